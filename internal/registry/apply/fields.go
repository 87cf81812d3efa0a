package apply

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/fieldset"
)

// Fields records the managers of fields in metadata.managedFields, for objects of one version, and
// merges applied configurations.
//
// It behaves as the field manager of Kubernetes. Errors, and merges that remove fields, are delegated
// to that field manager.
type Fields struct {
	kind        schema.GroupVersionKind
	apiVersion  string
	subresource string
	empty       object.Tree // an empty object of the kind

	definition *resource.Definition
	version    *resource.Version
	kept       kept
}

// kept are the fields that writes through a subresource do not manage: the top-level fields in except,
// or all fields but those at the paths of only. Without names there are none.
type kept struct{ except, only []string }

// fieldsKey is the key of the Fields of a subresource among the data derived from a version.
type fieldsKey struct {
	subresource string
	keeps       bool // no fields are reset
}

// FieldsOf returns the Fields for writes to version v of d through a subresource, or "" for the
// resource itself, with the defaults of feature gates. The first call creates them.
func FieldsOf(d *resource.Definition, v *resource.Version, subresource string) *Fields {
	return FieldsWith(nil, d, v, subresource)
}

// FieldsWith returns the Fields with some feature gates.
func FieldsWith(gates *gate.Set, d *resource.Definition, v *resource.Version, subresource string) *Fields {
	keeps := v.ResetGate != "" && !gates.On(v.ResetGate)
	return v.Derived(fieldsKey{subresource, keeps}, func() any {
		f := &Fields{kind: d.GroupVersionKind(v.Name), apiVersion: d.APIVersion(v.Name), subresource: subresource, empty: empty(d, v), definition: d, version: v}
		// These fields are excluded in every version: a write that does not touch them must not take
		// them from a manager that uses another version.
		switch s := v.Subresource(subresource); {
		case s != nil:
			f.kept.only = s.Fields
		case !keeps:
			f.kept.except = v.ResetFields
		}
		return f
	}).(*Fields)
}

// take removes the excluded fields from a set.
func (k kept) take(s fieldset.Set) {
	for _, name := range k.except {
		delete(s, "f:"+name)
	}
	if len(k.only) > 0 {
		leave(s, k.only)
	}
}

// leave removes all fields from a set except those at some paths: names separated by dots, or * for
// any element of a list or a map. The fields on the way to them stay, too.
func leave(s fieldset.Set, paths []string) {
	for key, below := range s {
		if key == "." {
			continue
		}
		var deeper []string
		whole := false
		for _, path := range paths {
			first, rest, more := strings.Cut(path, ".")
			if first != "*" && key != "f:"+first {
				continue
			}
			if whole = whole || !more; more {
				deeper = append(deeper, rest)
			}
		}
		set, _ := below.(fieldset.Set)
		switch {
		case whole:
		case len(deeper) == 0:
			delete(s, key)
		case len(set) > 0:
			if leave(set, deeper); len(set) == 0 {
				delete(s, key)
			}
		}
	}
}

// empty returns an object without managed fields. For a kind with a Go type it is the JSON of the zero
// value.
func empty(d *resource.Definition, v *resource.Version) object.Tree {
	t := object.Tree{}
	if v.HasGoType() {
		// The JSON of a type can be decoded.
		if data, err := json.Marshal(v.New()); err == nil {
			_ = kjson.UnmarshalCaseSensitivePreserveInts(data, &t)
		}
	}
	t["apiVersion"], t["kind"], t["metadata"] = d.APIVersion(v.Name), d.Kind, object.Tree{}
	return t
}

// Update records in t the fields that manager has changed since old, which is nil for a new object. It
// changes t and returns the result. ctx limits conversions by webhooks.
//
// If the changes cannot be attributed, the managers keep their fields, and this change has no manager.
// An object that does not fit its schema is rejected later, and so is one of another kind, unless the
// write is limited to its status. An object that cannot be converted to the version of another manager
// is stored, as by kube-apiserver.
func (f *Fields) Update(ctx context.Context, old, t object.Tree, manager string) object.Tree {
	if old == nil {
		old = f.empty
	}
	if list, ok := f.account(ctx, old, t, manager); ok {
		list.write(t)
		return t
	}
	metadata := object.Metadata(t)
	delete(metadata, "managedFields")
	was, _ := old["metadata"].(object.Tree)
	if list, ok := was["managedFields"]; ok {
		metadata["managedFields"] = object.Clone(list)
	}
	return t
}

// account returns the managers after manager has changed old into t. It reports false if the change
// cannot be attributed.
func (f *Fields) account(ctx context.Context, old, t object.Tree, manager string) (entries, bool) {
	if object.APIVersion(t) != f.apiVersion || object.Kind(t) != f.kind.Kind {
		return nil, false
	}
	list := f.managers(old, t)
	if len(list) == 0 && object.UID(old) != "" {
		return list, true
	}
	return f.update(ctx, old, t, list, f.owner(manager, updates))
}

// owner returns the owner for an operation of a manager.
func (f *Fields) owner(manager, operation string) owner {
	if manager == "" {
		manager = "unknown"
	}
	return owner{manager, operation, f.apiVersion, f.subresource}
}

// managers returns the managers of old and removes them from t. A client may set managedFields in t,
// but not through a subresource. A client that omits managedFields does not reset them.
func (f *Fields) managers(old, t object.Tree) entries {
	var list entries
	reset := false
	if f.subresource == "" {
		list, reset = managed(t)
	}
	if metadata, ok := t["metadata"].(object.Tree); ok {
		delete(metadata, "managedFields")
	}
	if len(list) > 0 || reset {
		return list
	}
	list, _ = managed(old)
	return list.clone()
}

// update returns the managers after self has changed old into t. It reports false if an object is not
// of its type.
func (f *Fields) update(ctx context.Context, old, t object.Tree, list entries, self owner) (entries, bool) {
	of := typesOf(f.version)
	list, ok := f.present(list)
	if !ok || !of.Conforms(t, true) || !of.Conforms(old, true) {
		return nil, false
	}
	mine := view{apiVersion: self.apiVersion, of: of, changes: f.changes(of, old, t)}
	views := []view{mine}
	for i := range list {
		v, ok := f.view(ctx, &views, list[i].apiVersion, old, t)
		if !ok || !v.of.Reconcile(list[i].fields) {
			return nil, false
		}
		v.takeFrom(list[i].fields)
	}
	list = list.filled()
	set := mine.changes.Modified
	fieldset.Unite(set, mine.changes.Added)
	fieldset.Subtract(set, unmanaged)
	if len(set) > 0 {
		list = list.grant(self, set)
	}
	return list.capped(), true
}

// present returns the entries of versions that the kind has. It reports false if other entries make
// the account impossible: those of a custom resource, and those without a valid version.
func (f *Fields) present(list entries) (entries, bool) {
	has := func(e entry) bool {
		return slices.ContainsFunc(f.definition.Versions, func(v *resource.Version) bool {
			return f.definition.IsAPIVersion(e.apiVersion, v.Name)
		})
	}
	kept := list[:0:0]
	for i, e := range list {
		if has(e) {
			kept = append(kept, e)
			continue
		}
		if _, err := schema.ParseGroupVersion(e.apiVersion); err != nil || !f.definition.Dialect.ForgetsOwners {
			return list[i:], false
		}
	}
	return kept, true
}

// grant adds fields to those of an owner.
func (list entries) grant(o owner, set fieldset.Set) entries {
	i := list.of(o)
	if i < 0 {
		i, list = len(list), append(list, entry{owner: o, fields: set})
	} else {
		fieldset.Unite(list[i].fields, set)
	}
	list[i].setTime(time.Now())
	return list
}

// unmanaged are the fields without a manager. The set is read-only.
var unmanaged = fieldset.Set{
	"f:apiVersion": fieldset.Set{}, "f:kind": fieldset.Set{},
	"f:metadata": fieldset.Set{
		".": fieldset.Set{}, "f:name": fieldset.Set{}, "f:namespace": fieldset.Set{}, "f:creationTimestamp": fieldset.Set{},
		"f:selfLink": fieldset.Set{}, "f:uid": fieldset.Set{}, "f:clusterName": fieldset.Set{}, "f:generation": fieldset.Set{},
		"f:managedFields": fieldset.Set{}, "f:resourceVersion": fieldset.Set{},
	},
}

// A view is a change in one version, for the managers of fields in that version.
type view struct {
	apiVersion string
	of         *fieldset.Type
	changes    fieldset.Changes
}

// view returns the change of old into t in a version. It reports false if it is unknown.
func (f *Fields) view(ctx context.Context, views *[]view, apiVersion string, old, t object.Tree) (*view, bool) {
	i := slices.IndexFunc(*views, func(v view) bool { return v.apiVersion == apiVersion })
	if i >= 0 {
		return &(*views)[i], true
	}
	version := f.definition.Versions[slices.IndexFunc(f.definition.Versions, func(v *resource.Version) bool {
		return f.definition.IsAPIVersion(apiVersion, v.Name) // checked by present
	})]
	v := view{apiVersion: apiVersion, of: typesOf(version)}
	var both [2]object.Tree
	for i, o := range []object.Tree{old, t} {
		var err error
		if both[i], err = convert(ctx, f.definition, o, version.Name); err != nil || !v.of.Conforms(both[i], false) {
			return nil, false
		}
	}
	v.changes = f.changes(v.of, both[0], both[1])
	*views = append(*views, v)
	return &(*views)[len(*views)-1], true
}

// takeFrom removes the changed fields from another manager's set.
func (v *view) takeFrom(s fieldset.Set) {
	fieldset.Subtract(s, v.changes.Modified)
	fieldset.Subtract(s, v.changes.Added)
	fieldset.Subtract(s, v.changes.Removed)
}

// changes compares two objects without the excluded fields.
func (f *Fields) changes(of *fieldset.Type, old, now object.Tree) fieldset.Changes {
	c := of.Compare(old, now)
	for _, s := range []fieldset.Set{c.Removed, c.Modified, c.Added} {
		f.kept.take(s)
	}
	return c
}

// Apply returns old, which is nil for a new object, merged with the configuration that manager
// applies. A field with another value and another manager is a conflict, unless force takes it over.
func (f *Fields) Apply(ctx context.Context, old, wanted object.Tree, manager string, force bool) (object.Tree, error) {
	if old == nil {
		old = f.empty
	}
	if t, ok := f.merge(ctx, old, wanted, manager, force); ok {
		return t, nil
	}
	return f.applyByLibrary(ctx, old, wanted, manager, force)
}

// merge is Apply for the case without conflicts and without removals. It reports false for all other
// cases.
func (f *Fields) merge(ctx context.Context, old, wanted object.Tree, manager string, force bool) (object.Tree, bool) {
	of := typesOf(f.version)
	if !f.plain(old, wanted, manager) || !of.Conforms(wanted, false) || !of.Conforms(old, true) {
		return nil, false
	}
	list, ok := f.before(ctx, old)
	if !ok {
		return nil, false
	}
	set := of.Fields(wanted)
	f.kept.take(set)
	self := f.owner(manager, applies)
	i := list.of(self)
	if i < 0 {
		i, list = len(list), append(list, entry{owner: self})
	} else if list[i].apiVersion != f.apiVersion || !fieldset.Contains(set, list[i].fields) {
		return nil, false
	}
	list[i].fields = nil
	list = list.clone()
	for _, e := range list {
		if e.apiVersion != f.apiVersion || !of.Reconcile(e.fields) {
			return nil, false
		}
	}
	list[i].fields = set
	old = without(old)
	t, ok := of.Merge(old, wanted)
	if !ok {
		return nil, false
	}
	v := view{changes: f.changes(of, old, t)}
	for k, e := range list {
		if k == i {
			continue
		}
		if !force && (fieldset.Intersect(e.fields, v.changes.Modified) || fieldset.Intersect(e.fields, v.changes.Added)) {
			return nil, false
		}
		v.takeFrom(e.fields)
	}
	if object.Equal(old, t) {
		t = object.CloneTree(old)
	} else {
		list[i].setTime(time.Now())
	}
	fieldset.Subtract(set, unmanaged)
	list.filled().write(t)
	return t, true
}

// lastApplied is the annotation of client-side apply, which kubectl and the server keep in sync.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// plain reports whether an apply concerns only fields of the kind.
func (f *Fields) plain(old, wanted object.Tree, manager string) bool {
	metadata, _ := wanted["metadata"].(object.Tree)
	if _, ok := metadata["managedFields"]; ok {
		return false
	}
	for _, t := range []object.Tree{old, wanted} {
		metadata, _ := t["metadata"].(object.Tree)
		annotations, _ := metadata["annotations"].(object.Tree)
		if _, ok := annotations[lastApplied]; ok && manager == "kubectl" {
			return false
		}
	}
	return object.APIVersion(wanted) == f.apiVersion && object.Kind(wanted) == f.kind.Kind
}

// before returns the managers before an apply. An object without managers belongs to the manager
// before-first-apply. The entries may share their fields with the object.
func (f *Fields) before(ctx context.Context, old object.Tree) (entries, bool) {
	if list, _ := managed(old); len(list) > 0 {
		return list, true
	}
	metadata, _ := old["metadata"].(object.Tree)
	if _, ok := metadata["managedFields"]; ok {
		return nil, false
	}
	return f.update(ctx, f.empty, old, nil, f.owner("before-first-apply", updates))
}

// without returns t without its managedFields. The result shares its other parts with t.
func without(t object.Tree) object.Tree {
	metadata, ok := t["metadata"].(object.Tree)
	if !ok {
		return t
	}
	if _, ok := metadata["managedFields"]; !ok {
		return t
	}
	t, metadata = maps.Clone(t), maps.Clone(metadata)
	delete(metadata, "managedFields")
	t["metadata"] = metadata
	return t
}
