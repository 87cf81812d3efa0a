// Package conversion converts custom objects between the versions of their kind by rules.
//
// Rules are those of the object CRDConversionConfig of the declarative-conversion-operator: for each
// version of a definition, the rules between it (a spoke) and one other version (the hub). Parse reads
// them, and Compile checks them against the schemas: each field that differs is covered by a rule, and a
// rule that loses values says so. A Converter converts objects in place, without calls to other
// processes, and converts the ownership of their fields.
//
// A rule is compiled to two steps, one for each direction. The steps of a conversion first read all
// values from the object as it was, then remove the fields that the rules claim, and then write the
// results. All other fields stay as they are, so a conversion costs what differs.
//
// The package does not know definitions, storage, or the source of rules.
package conversion

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
)

// A Converter converts objects between versions. It is safe for concurrent use.
type Converter struct {
	group  string
	hub    string
	spokes map[string]*pair
}

// A pair has the plans between the hub and a spoke.
type pair struct{ toHub, toSpoke *plan }

// Convert converts an object from its version to another one. It changes the object, also if it returns an
// error. The error is a *field.Error if the rules do not allow a value.
func (c *Converter) Convert(ctx context.Context, obj object.Tree, version string) error {
	from := versionOf(object.APIVersion(obj), c.group)
	if from == version {
		return nil
	}
	if from != c.hub {
		p := c.spokes[from]
		if p == nil {
			return noRules(from)
		}
		if err := p.toHub.convert(ctx, obj); err != nil {
			return err
		}
	}
	if version != c.hub {
		p := c.spokes[version]
		if p == nil {
			return noRules(version)
		}
		if err := p.toSpoke.convert(ctx, obj); err != nil {
			return err
		}
	}
	c.convertOwners(obj, version)
	obj["apiVersion"] = c.group + "/" + version
	return nil
}

func noRules(version string) error {
	return fmt.Errorf("there are no conversion rules for version %q", version)
}

// versionOf returns the version in an apiVersion of a group.
func versionOf(apiVersion, group string) string {
	if n := len(apiVersion) - len(group); n <= 0 || apiVersion[:len(group)] != group || apiVersion[len(group)] != '/' {
		return ""
	}
	return apiVersion[len(group)+1:]
}

// A plan converts objects of one version to another one, or the elements of a list.
type plan struct {
	steps []step
	// unmapped are the fields without a rule that do not have the same type in both versions.
	unmapped []taken
}

// A step is one direction of a rule.
type step struct {
	// from are the fields that the rule claims in the source. The conversion removes them.
	from []taken
	// to are the fields that the rule writes.
	to []target
	// when limits the rule to some objects; nil for none.
	when *condition
	// eval reads the values of an unchanged object.
	eval func(in object.Tree, w *writes) error
	// moves is true if the value of the first from becomes that of the first to, with all fields below.
	moves bool
	// items converts the elements of a list that moves; nil for unchanged elements.
	items *plan
}

// A taken field is removed from an object, and so are its parents that become empty. The first
// keep parents stay: the other version has them, too.
type taken struct {
	path
	keep int
}

// A write is a result of a step.
type write struct {
	path  path
	value any
	items *plan // of a list, to convert its elements
}

// writes are the results of all steps.
type writes struct {
	ctx context.Context // of the conversion
	all []write
}

func (w *writes) set(p path, value any) { w.all = append(w.all, write{path: p, value: value}) }

var buffers = sync.Pool{New: func() any { return &writes{} }}

// convert converts an object, or an element of a list.
func (p *plan) convert(ctx context.Context, obj object.Tree) error {
	w := buffers.Get().(*writes)
	w.ctx = ctx
	defer func() {
		w.ctx = nil
		clear(w.all)
		w.all = w.all[:0]
		buffers.Put(w)
	}()
	for i := range p.steps {
		s := &p.steps[i]
		if s.eval == nil || !s.when.holds(obj) {
			continue
		}
		if err := s.eval(obj, w); err != nil {
			return err
		}
	}
	for i := range p.steps {
		for _, t := range p.steps[i].from {
			t.take(obj)
		}
	}
	for _, t := range p.unmapped {
		t.take(obj)
	}
	for _, r := range w.all {
		if err := r.apply(ctx, obj); err != nil {
			return err
		}
	}
	return nil
}

func (r *write) apply(ctx context.Context, obj object.Tree) error {
	if r.items != nil {
		for i, e := range r.value.([]any) {
			t, ok := e.(object.Tree)
			if !ok {
				return field.Invalid(r.path.field().Index(i), e, "must be an object: the conversion rules are about its fields")
			}
			if err := r.items.convert(ctx, t); err != nil {
				return below(r.path.field().Index(i), err)
			}
		}
	}
	return r.path.set(obj, r.value)
}

// below returns an error of an element as one of the object.
func below(at *field.Path, err error) error {
	if e, ok := err.(*field.Error); ok {
		moved := *e
		moved.Field = at.String() + "." + e.Field
		return &moved
	}
	return err
}

// A condition limits a rule to objects with a value.
type condition struct {
	path   path
	equals any
}

func (c *condition) holds(obj object.Tree) bool {
	if c == nil {
		return true
	}
	v, ok := c.path.get(obj)
	return ok && object.Equal(v, c.equals)
}
