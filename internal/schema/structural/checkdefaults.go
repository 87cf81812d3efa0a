package structural

import (
	"context"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// Defaults are the default values of a schema, compiled with a slightly different form of it for their
// validation.
type Defaults struct{ root *node }

// CompileDefaults compiles a schema for the check of its default values.
func CompileDefaults(props *apiextensionsv1.JSONSchemaProps) (*Defaults, error) {
	root, err := (&builder{ofDefaults: true}).build(props)
	if err != nil {
		return nil, err
	}
	return &Defaults{root}, nil
}

// Check returns the errors of default values, in a schema at at. Each must be complete by the schema,
// pruned unless tolerateUnpruned is set, with valid metadata, and valid. It is called once.
func (d *Defaults) Check(at *field.Path, tolerateUnpruned bool) field.ErrorList {
	c := &defaultCheck{tolerateUnpruned: tolerateUnpruned}
	root := *d.root
	root.embedded, root.embeds = true, true
	c.below(&root, scope{root: &root}, at)
	return c.errs
}

// Unpruned reports whether a default has fields that the schema does not know.
func (d *Defaults) Unpruned() bool { return d.root.unpruned(d.root, nil) }

type defaultCheck struct {
	errs             field.ErrorList
	tolerateUnpruned bool
}

// A scope is the object that a default is part of: the nearest embedded one or
// the whole.
type scope struct {
	root       *node
	path       []step // from root to here
	insideMeta bool
}

func (s scope) child(n *node, name string) scope {
	s.path = append(slices.Clip(s.path), step{name: name})
	if n.embedded && jsonschema.IsCommon(name) {
		s.insideMeta = true
	}
	return s
}

func (c *defaultCheck) below(n *node, in scope, at *field.Path) {
	if n.embedded && n != in.root {
		whole := *n
		in = scope{root: &whole}
	}
	if n.def != nil {
		c.value(n, in, at.Child("default"))
	}
	// Below additionalProperties a default is never used by itself.
	if n.items != nil {
		sub := in
		sub.path = append(slices.Clip(sub.path), step{indexed: true})
		c.below(n.items, sub, at.Child("items"))
	}
	for _, name := range slices.Sorted(maps.Keys(n.properties)) {
		c.below(n.properties[name], in.child(n, name), at.Child("properties").Key(name))
	}
}

func (c *defaultCheck) value(n *node, in scope, at *field.Path) {
	ctx := context.Background()
	if in.insideMeta {
		obj, ok := surround(object.Clone(n.def), in.path).(map[string]any)
		if !ok {
			return
		}
		if err := metadataError(ctx, in.root, obj); err != nil {
			c.errs = append(c.errs, field.Invalid(at, n.def, "must result in valid metadata: "+err.Error()))
			return
		}
		c.errs = append(c.errs, n.validate(n.def, at, nil)...)
		return
	}
	whole := map[string]any{"": object.Clone(n.def)}
	if n.embedded {
		obj, _ := whole[""].(map[string]any)
		n.pruneRoot(obj, nil)
	} else {
		p := pruner{}
		p.value(whole[""], n)
	}
	if !object.Equal(whole[""], n.def) && !c.tolerateUnpruned {
		c.errs = append(c.errs, field.Invalid(at, n.def, "must not have unknown fields"))
	}
	if err := n.checkEmbedded(n.def, at); err != nil {
		c.errs = append(c.errs, err.(*field.Error))
		return
	}
	// Errors show the coerced value.
	n.coerceEmbedded(n.def, nil)
	if errs := n.embeddedErrors(ctx, n.def, at); len(errs) > 0 {
		c.errs = append(c.errs, errs...)
		return
	}
	c.errs = append(c.errs, n.validate(n.def, at, nil)...)
}

// metadataError returns the error of the metadata of obj, an incomplete object.
func metadataError(ctx context.Context, root *node, obj map[string]any) error {
	for k, v := range map[string]string{"apiVersion": "validation/v1", "kind": "Validation"} {
		if _, ok := obj[k]; !ok {
			obj[k] = v
		}
	}
	if err := root.checkEmbedded(obj, nil); err != nil {
		return err
	}
	if errs := root.embeddedErrors(ctx, obj, nil); len(errs) > 0 {
		return errs.ToAggregate()
	}
	return nil
}

// surround returns the object in which v is all there is, at path.
func surround(v any, path []step) any {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].indexed {
			v = []any{v}
		} else {
			v = map[string]any{path[i].name: v}
		}
	}
	return v
}

// unpruned reports whether a default at or below n has fields that the schema
// does not know.
func (n *node) unpruned(root *node, at []step) bool {
	if n.def != nil {
		pruned, err := pruneDefault(object.Clone(n.def), root, at)
		if err != nil || !reflect.DeepEqual(pruned, n.def) {
			return err == nil
		}
	}
	for name, p := range n.properties {
		if p.unpruned(root, append(slices.Clip(at), step{name: name})) {
			return true
		}
	}
	return n.additional != nil && n.additional.unpruned(root, append(slices.Clip(at), step{name: "*"})) ||
		n.items != nil && n.items.unpruned(root, append(slices.Clip(at), step{indexed: true}))
}
