package kind

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// A Kind describes a built-in kind with the Go types T and L, both pointers, for objects and
// lists. It is a Definition with one Version and shorthands for common properties. New fills in the
// rest from the types and the group.
//
// Go compiles generic code once for all pointers, and once for each struct.
type Kind[T, L any] struct {
	resource.Definition
	// Version has the properties without a field below; nil for none.
	Version *resource.Version

	// StatusKeeps are the paths that a status update leaves unchanged, separated by spaces; "" for
	// a kind without the subresource status. An update of the object leaves the status unchanged,
	// and a new object has none.
	StatusKeeps string
	// StatusGate is a feature gate without which writes of the resource can change the status, or "".
	StatusGate gate.Name
	// StatusHasNoTable excludes the subresource status from Tables.
	StatusHasNoTable bool
	// StatusOnCreate allows a status in a new object.
	StatusOnCreate bool

	// Rules are the rules of the Go types; nil for the table alone.
	Rules func() *rule.Set
	// Default sets, after Rules, the results of decoding in Kubernetes: defaults of the kind, and
	// fields that are another form of others. The client owns these fields, as if it had sent them.
	// Fields from Prepare have no owner.
	Default func(obj map[string]any)
	// Refuse returns a decoding error beyond those of the Go type; nil for none.
	Refuse func(obj map[string]any) error
	// Read converts an object that another program has stored to the stored form of this server, as
	// Prepare does for writes.
	Read func(obj map[string]any)
	// AnyFinalizers allows finalizers without a domain.
	AnyFinalizers bool
	// Validate validates an object. old is nil on create.
	Validate func(c *rule.Check, obj, old T)
	// ValidateStatus replaces Validate for status updates.
	ValidateStatus func(c *rule.Check, obj, old T)
	// WarnOfStatus replaces Warn for status updates. Without it, status updates with their own
	// validation have no warnings.
	WarnOfStatus func(c *rule.Check, obj, old T)
	// Warn returns warnings about a valid object.
	Warn func(c *rule.Check, obj, old T)

	// Columns are the columns of a Table as text: see columns.
	Columns string
	// Cells are the functions in Columns, and Docs the texts.
	Cells Cells
	Docs  Docs
	// Select has the field selectors as text: NAME or NAME=PATH, separated by spaces.
	Select string
}

// New returns the Definition of the kind. others are its other versions.
func (k Kind[T, L]) New(others ...Version) *resource.Definition {
	u := untyped{
		definition: k.Definition, version: k.Version, object: reflect.TypeFor[T]().Elem(), list: reflect.TypeFor[L]().Elem(),
		statusKeeps: k.StatusKeeps, statusGate: k.StatusGate, statusHasNoTable: k.StatusHasNoTable, statusOnCreate: k.StatusOnCreate,
		rules: k.Rules, fill: k.Default, refuse: k.Refuse, read: k.Read, anyFinalizers: k.AnyFinalizers,
		validate: untypedOf(k.Validate), validateStatus: untypedOf(k.ValidateStatus),
		warnOfStatus: untypedOf(k.WarnOfStatus), warn: untypedOf(k.Warn),
		columns: k.Columns, cells: k.Cells, docs: k.Docs, selects: k.Select,
	}
	return u.build(others)
}

// untyped is a Kind without type parameters.
type untyped struct {
	definition                                   resource.Definition
	version                                      *resource.Version
	object, list                                 reflect.Type
	statusKeeps                                  string
	statusGate                                   gate.Name
	statusHasNoTable, statusOnCreate             bool
	rules                                        func() *rule.Set
	fill, read                                   func(obj map[string]any)
	refuse                                       func(obj map[string]any) error
	anyFinalizers                                bool
	validate, validateStatus, warnOfStatus, warn hook
	columns                                      string
	cells                                        Cells
	docs                                         Docs
	selects                                      string
}

func (k *untyped) build(others []Version) *resource.Definition {
	k.complete()
	switch {
	case k.validate != nil:
		k.definition.Validate = k.validating(k.validate)
	case !k.anyFinalizers:
		k.definition.Validate = resource.Looking(func(obj, _ map[string]any) field.ErrorList { return MetaFinalizers(obj) })
	}
	if k.warn != nil {
		k.definition.Warn = warningHook(k.object, k.rules, k.warn)
	}
	versions := []Version{k.own()}
	for _, v := range others {
		versions = append(versions, k.further(v, versions[0]))
	}
	return New(k.definition, versions...)
}

// validating returns a validation hook, which validates finalizers in the metadata for most kinds.
func (k *untyped) validating(validate hook) func(context.Context, *resource.Change) field.ErrorList {
	if k.anyFinalizers {
		return validationHook(k.object, k.rules, validate)
	}
	return validationHook(k.object, k.rules, func(c *rule.Check, p *pair) {
		c.Add(MetaFinalizers(c.Object)...)
		validate(c, p)
	})
}

// complete sets properties from the type.
func (k *untyped) complete() {
	if k.definition.Kind == "" {
		k.definition.Kind = k.object.Name()
	}
	if k.definition.Singular == "" {
		k.definition.Singular = strings.ToLower(k.definition.Kind)
	}
	if k.rules == nil {
		k.rules = tableOnly
	}
}

var tableOnly = rule.Lazy()

// own returns the version that the Kind describes.
func (k *untyped) own() Version {
	v := k.version
	if v == nil {
		v = &resource.Version{}
	}
	if v.Name == "" {
		v.Name = "v1"
	}
	t := k.object
	if k.columns != "" {
		text, cells, docs := k.columns, k.cells, k.docs
		v.Columns = sync.OnceValue(func() []view.Column { return columns(t, text, cells, docs) })
	}
	if k.selects != "" {
		v.SelectableFields = selectable(t, k.selects)
	}
	if k.statusKeeps != "" {
		k.addStatus(v)
	}
	rules, fill := k.rules, k.fill
	return versionOf(v, t, k.list).WhenDecoded(func(obj map[string]any) {
		rules().Fill(t, obj)
		if fill != nil {
			fill(obj)
		}
	}).Refusing(k.refuse).WhenRead(k.read)
}

// addStatus adds the subresource status, and reverts the other part in each write.
func (k *untyped) addStatus(v *resource.Version) {
	keeps, wipes, revert, onCreate, empty := strings.Fields(k.statusKeeps), k.statusGate, v.Revert, k.statusOnCreate, emptyOf(k.object)
	v.ResetFields, v.ResetGate = append(v.ResetFields, "status"), k.statusGate
	v.Revert = func(ctx context.Context, c *resource.Change) {
		switch {
		case wipes != "" && !c.Gates.On(wipes): // the status stays
		case c.Old != nil:
			Put(c.Object, "status", c.Old["status"])
		case !onCreate:
			Put(c.Object, "status", empty()["status"])
		}
		if revert != nil {
			revert(ctx, c)
		}
	}
	status := resource.Subresource{
		Name: "status", Verbs: []string{"get", "patch", "update"}, Fields: fieldsOfStatus(keeps), NoTable: k.statusHasNoTable,
		Revert: resource.Changing(func(obj, old map[string]any) {
			for _, path := range keeps {
				keep(obj, old, strings.Split(path, "."))
			}
		}),
	}
	if k.validateStatus != nil {
		status.Validate = k.validating(k.validateStatus)
		status.Warn = func(context.Context, *resource.Change) []string { return nil }
	}
	if k.warnOfStatus != nil {
		status.Warn = warningHook(k.object, k.rules, k.warnOfStatus)
	}
	v.Subresources = append(v.Subresources, status)
}

// fieldsOfStatus returns the fields that a status update can change.
func fieldsOfStatus(keeps []string) []string {
	kept := func(path string) bool { return slices.Contains(keeps, path) }
	within := []string{"metadata.annotations", "metadata.finalizers", "metadata.generateName", "metadata.labels", "metadata.ownerReferences"}
	switch {
	case kept("metadata"):
		return []string{"status"}
	case slices.ContainsFunc(within, kept):
		return append(slices.DeleteFunc(within, kept), "status")
	default:
		return []string{"metadata", "status"}
	}
}

// emptyOf returns a function that returns an empty object of a type.
func emptyOf(t reflect.Type) func() map[string]any {
	return sync.OnceValue(func() map[string]any {
		data, err := utiljson.Marshal(reflect.New(t).Interface())
		if err != nil {
			return nil
		}
		var out map[string]any
		if utiljson.Unmarshal(data, &out) != nil { // the same number types as in other trees
			return nil
		}
		return out
	})
}

// keptInStatus are the fields of the metadata that a status update keeps. The others are the client's, if
// validation allows a change of them.
var keptInStatus = []string{
	"annotations", "deletionTimestamp", "finalizers", "generation", "labels", "ownerReferences", "selfLink",
}

// keep reverts the value at a path.
func keep(obj, old map[string]any, path []string) {
	switch {
	case len(path) == 1 && path[0] == "metadata":
		for _, f := range keptInStatus {
			keep(obj, old, []string{"metadata", f})
		}
		return
	case len(path) == 1:
		Put(obj, path[0], old[path[0]])
		return
	}
	if inner := Tree(old, path[0]); inner != nil || Tree(obj, path[0]) != nil {
		keep(Child(obj, path[0]), inner, path[1:])
	}
}

// Typed returns a validation hook from a function of Go values; T is a pointer.
func Typed[T any](rules func() *rule.Set, validate func(c *rule.Check, obj, old T)) func(context.Context, *resource.Change) field.ErrorList {
	return validationHook(reflect.TypeFor[T]().Elem(), rules, untypedOf(validate))
}

// TypedWarnings returns a warning hook from a function of Go values; T is a pointer.
func TypedWarnings[T any](rules func() *rule.Set, warn func(c *rule.Check, obj, old T)) func(context.Context, *resource.Change) []string {
	return warningHook(reflect.TypeFor[T]().Elem(), rules, untypedOf(warn))
}

// A hook is a function of Go values without their type.
type hook func(c *rule.Check, p *pair)

// untypedOf returns the hook for a function of Go values, nil for nil. Inlined, it would be repeated four times
// for each kind.
//
//go:noinline
func untypedOf[T any](f func(c *rule.Check, obj, old T)) hook {
	if f == nil {
		return nil
	}
	return func(c *rule.Check, p *pair) { f(c, p.obj.(T), p.old.(T)) }
}

func validationHook(t reflect.Type, rules func() *rule.Set, validate hook) func(context.Context, *resource.Change) field.ErrorList {
	return func(ctx context.Context, c *resource.Change) field.ErrorList {
		check := rule.NewCheck(ctx, c, rules())
		validate(check, pairOf(c, t))
		return check.Errors()
	}
}

func warningHook(t reflect.Type, rules func() *rule.Set, warn hook) func(context.Context, *resource.Change) []string {
	return func(ctx context.Context, c *resource.Change) []string {
		check := rule.NewCheck(ctx, c, rules())
		warn(check, pairOf(c, t))
		return check.Warnings()
	}
}

// A pair is a Change in Go values, both pointers to the same type. The hooks of a phase share it.
type pair struct {
	of       reflect.Type
	obj, old any
}

func pairOf(c *resource.Change, t reflect.Type) *pair {
	if p, ok := c.Typed.(*pair); ok && p.of == t {
		return p
	}
	p := &pair{t, valueOf(t, unmanaged(c.Object)), valueOf(t, unmanaged(c.Old))}
	c.Typed = p
	return p
}

// unmanaged returns an object without managedFields. No hook needs them, and decoding them takes
// longer than the rest.
func unmanaged(obj map[string]any) map[string]any {
	metadata := Tree(obj, "metadata")
	if metadata["managedFields"] == nil {
		return obj
	}
	out, meta := maps.Clone(obj), maps.Clone(metadata)
	delete(meta, "managedFields")
	out["metadata"] = meta
	return out
}
