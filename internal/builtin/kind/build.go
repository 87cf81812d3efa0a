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
	"github.com/anykind/anykind/internal/object/resource"
)

// A Kind describes a built-in kind with the Go types T and L for objects and lists. It is a
// Definition with one Version and shorthands for common properties. New fills in the rest from the
// types and the group.
type Kind[T, L any] struct {
	resource.Definition
	// Version has the properties without a field below; nil for none.
	Version *resource.Version

	// StatusKeeps are the paths that a status update leaves unchanged, separated by spaces; "" for
	// a kind without the subresource status. An update of the object leaves the status unchanged,
	// and a new object has none.
	StatusKeeps string
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
	Validate func(c *rule.Check, obj, old *T)
	// ValidateStatus replaces Validate for status updates.
	ValidateStatus func(c *rule.Check, obj, old *T)
	// WarnOfStatus replaces Warn for status updates. Without it, status updates with their own
	// validation have no warnings.
	WarnOfStatus func(c *rule.Check, obj, old *T)
	// Warn returns warnings about a valid object.
	Warn func(c *rule.Check, obj, old *T)

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
	k.fill()
	switch {
	case k.Validate != nil:
		k.Definition.Validate = Typed(k.Rules, k.withFinalizers(k.Validate))
	case !k.AnyFinalizers:
		k.Definition.Validate = resource.Looking(func(obj, _ map[string]any) field.ErrorList { return MetaFinalizers(obj) })
	}
	if k.Warn != nil {
		k.Definition.Warn = TypedWarnings(k.Rules, k.Warn)
	}
	versions := []Version{k.version()}
	for _, v := range others {
		versions = append(versions, k.further(v, versions[0]))
	}
	return New(k.Definition, versions...)
}

// withFinalizers adds the validation of finalizers in the metadata, which most kinds have.
func (k *Kind[T, L]) withFinalizers(validate func(c *rule.Check, obj, old *T)) func(*rule.Check, *T, *T) {
	if k.AnyFinalizers {
		return validate
	}
	return func(c *rule.Check, obj, old *T) {
		c.Add(MetaFinalizers(c.Object)...)
		validate(c, obj, old)
	}
}

// fill sets properties from the type and the group.
func (k *Kind[T, L]) fill() {
	t := reflect.TypeFor[T]()
	if k.Kind == "" {
		k.Kind = t.Name()
	}
	if k.Singular == "" {
		k.Singular = strings.ToLower(k.Kind)
	}
	if k.Rules == nil {
		k.Rules = tableOnly
	}
}

var tableOnly = rule.Lazy()

// version returns the version of the Kind.
func (k *Kind[T, L]) version() Version {
	v := k.Version
	if v == nil {
		v = &resource.Version{}
	}
	if v.Name == "" {
		v.Name = "v1"
	}
	t := reflect.TypeFor[T]()
	if k.Columns != "" {
		text, cells, docs := k.Columns, k.Cells, k.Docs
		v.Columns = sync.OnceValue(func() []resource.Column { return columns(t, text, cells, docs) })
	}
	if k.Select != "" {
		v.SelectableFields = selectable(t, k.Select)
	}
	if k.StatusKeeps != "" {
		k.addStatus(v)
	}
	rules, own := k.Rules, k.Default
	return VersionOf[T, L](v).WhenDecoded(func(obj map[string]any) {
		rules().Fill(t, obj)
		if own != nil {
			own(obj)
		}
	}).Refusing(k.Refuse).WhenRead(k.Read)
}

// addStatus adds the subresource status, and reverts the other part in each write.
func (k Kind[T, L]) addStatus(v *resource.Version) {
	keeps, revert, onCreate, empty := strings.Fields(k.StatusKeeps), v.Revert, k.StatusOnCreate, emptyOf[T]()
	v.ResetFields = append(v.ResetFields, "status")
	v.Revert = func(ctx context.Context, c *resource.Change) {
		switch {
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
		Name: "status", Verbs: []string{"get", "patch", "update"}, Fields: fieldsOfStatus(keeps), NoTable: k.StatusHasNoTable,
		Revert: resource.Changing(func(obj, old map[string]any) {
			for _, path := range keeps {
				keep(obj, old, strings.Split(path, "."))
			}
		}),
	}
	if k.ValidateStatus != nil {
		status.Validate = Typed(k.Rules, k.withFinalizers(k.ValidateStatus))
		status.Warn = func(context.Context, *resource.Change) []string { return nil }
	}
	if k.WarnOfStatus != nil {
		status.Warn = TypedWarnings(k.Rules, k.WarnOfStatus)
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
func emptyOf[T any]() func() map[string]any {
	return sync.OnceValue(func() map[string]any {
		data, err := utiljson.Marshal(new(T))
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

// Typed returns a validation hook from a function of Go values.
func Typed[T any](rules func() *rule.Set, validate func(c *rule.Check, obj, old *T)) func(context.Context, *resource.Change) field.ErrorList {
	return func(ctx context.Context, c *resource.Change) field.ErrorList {
		check, p := typed[T](ctx, c, rules)
		validate(check, p.obj, p.old)
		return check.Errors()
	}
}

// TypedWarnings returns a warning hook from a function of Go values.
func TypedWarnings[T any](rules func() *rule.Set, warn func(c *rule.Check, obj, old *T)) func(context.Context, *resource.Change) []string {
	return func(ctx context.Context, c *resource.Change) []string {
		check, p := typed[T](ctx, c, rules)
		warn(check, p.obj, p.old)
		return check.Warnings()
	}
}

// A pair is a Change in Go values. The hooks of a phase share it.
type pair[T any] struct{ obj, old *T }

func typed[T any](ctx context.Context, c *resource.Change, rules func() *rule.Set) (*rule.Check, *pair[T]) {
	p, ok := c.Typed.(*pair[T])
	if !ok {
		p = &pair[T]{obj: ValueOf[T](unmanaged(c.Object)), old: ValueOf[T](unmanaged(c.Old))}
		c.Typed = p
	}
	return rule.NewCheck(ctx, c, rules()), p
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
