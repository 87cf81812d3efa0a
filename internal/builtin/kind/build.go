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
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// A Kind is a built-in kind whose objects, and lists of them, have the Go types T and L. It
// is a Definition with one Version, and what most kinds say of them in a line. New fills
// in what the types and the group say already.
type Kind[T, L any] struct {
	resource.Definition
	// Version is what the fields below do not say of it; nil for nothing.
	Version *resource.Version

	// StatusKeeps are the paths of what a write through the subresource status leaves as
	// it is, divided by spaces; "" for a kind without that subresource. A write of the
	// object itself leaves the status as it is, and a new object has none.
	StatusKeeps string
	// StatusHasNoTable says that no Table shows what is read through that subresource.
	StatusHasNoTable bool
	// StatusOnCreate lets a new object bring its status.
	StatusOnCreate bool

	// Rules are those of the Go types of the kind; nil for the table alone.
	Rules func() *rule.Set
	// Default fills in, after the Rules have, what Kubernetes makes of an object when
	// it decodes one: defaults that belong to the kind, and fields that are another way
	// to write others. The outcome belongs to who writes the object, as if the client
	// had sent it. What Prepare does belongs to nobody.
	Default func(obj map[string]any)
	// Refuse says why an object cannot be decoded, where its Go type does not; nil for
	// nothing.
	Refuse func(obj map[string]any) error
	// Read brings an object that another program has stored into the form in which it
	// would be stored here, where Prepare does so for one that is written.
	Read func(obj map[string]any)
	// AnyFinalizers are allowed, where other kinds ask for those that say whose they are.
	AnyFinalizers bool
	// Validate finds what is wrong with an object. old is nil on create.
	Validate func(c *rule.Check, obj, old *T)
	// ValidateStatus takes the place of Validate in writes of the status.
	ValidateStatus func(c *rule.Check, obj, old *T)
	// WarnOfStatus takes the place of Warn in writes of the status, which warn of nothing
	// without it where they are validated apart.
	WarnOfStatus func(c *rule.Check, obj, old *T)
	// Warn tells what the client should know of an object that is valid.
	Warn func(c *rule.Check, obj, old *T)

	// Columns of a Table as text: see columns.
	Columns string
	// Cells are the functions that Columns name, and Docs the texts.
	Cells Cells
	Docs  Docs
	// Select has the field selectors as text: NAME or NAME=PATH, divided by spaces.
	Select string
}

// New returns the Definition of the kind. others are further versions of it.
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

// withFinalizers adds to a validation what is validated of the metadata of most kinds.
func (k *Kind[T, L]) withFinalizers(validate func(c *rule.Check, obj, old *T)) func(*rule.Check, *T, *T) {
	if k.AnyFinalizers {
		return validate
	}
	return func(c *rule.Check, obj, old *T) {
		c.Add(MetaFinalizers(c.Object)...)
		validate(c, obj, old)
	}
}

// fill says of the kind what its type and its group say.
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

// version returns the version that the Kind describes.
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

// addStatus divides what the object and its status may change.
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

// fieldsOfStatus are what a write of the status may change, which is not what it keeps.
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

// emptyOf returns a function that returns an object of a type of which nothing is said.
func emptyOf[T any]() func() map[string]any {
	return sync.OnceValue(func() map[string]any {
		data, err := utiljson.Marshal(new(T))
		if err != nil {
			return nil
		}
		var out map[string]any
		if utiljson.Unmarshal(data, &out) != nil { // numbers are as in other trees
			return nil
		}
		return out
	})
}

// keep makes what is at a path what it was.
func keep(obj, old map[string]any, path []string) {
	switch {
	case len(path) == 1 && path[0] == "metadata":
		managed := Value(obj, "metadata", "managedFields") // which tells of this write
		grace, has := Tree(obj, "metadata")["deletionGracePeriodSeconds"]
		obj["metadata"] = object.Clone(old["metadata"])
		Put(Child(obj, "metadata"), "managedFields", managed)
		if has { // which validation compares
			Child(obj, "metadata")["deletionGracePeriodSeconds"] = grace
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

// Typed makes a hook that validates of a function over typed values.
func Typed[T any](rules func() *rule.Set, validate func(c *rule.Check, obj, old *T)) func(context.Context, *resource.Change) field.ErrorList {
	return func(ctx context.Context, c *resource.Change) field.ErrorList {
		check, p := typed[T](ctx, c, rules)
		validate(check, p.obj, p.old)
		return check.Errors()
	}
}

// TypedWarnings makes a hook that warns of a function over typed values.
func TypedWarnings[T any](rules func() *rule.Set, warn func(c *rule.Check, obj, old *T)) func(context.Context, *resource.Change) []string {
	return func(ctx context.Context, c *resource.Change) []string {
		check, p := typed[T](ctx, c, rules)
		warn(check, p.obj, p.old)
		return check.Warnings()
	}
}

// A pair is a Change in Go values. It is made once and shared by the hooks of a phase.
type pair[T any] struct{ obj, old *T }

func typed[T any](ctx context.Context, c *resource.Change, rules func() *rule.Set) (*rule.Check, *pair[T]) {
	p, ok := c.Typed.(*pair[T])
	if !ok {
		p = &pair[T]{obj: ValueOf[T](unmanaged(c.Object)), old: ValueOf[T](unmanaged(c.Old))}
		c.Typed = p
	}
	return rule.NewCheck(ctx, c, rules()), p
}

// unmanaged returns an object without its managedFields. No hook asks for them, and to have
// them in Go values takes longer than all else.
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
