package celrule

import (
	"context"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckDefaults returns the rules that default values break, of a structural schema at at. broken has
// the other errors of default values; those values are skipped.
func CheckDefaults(ctx context.Context, props *apiextensionsv1.JSONSchemaProps, at *field.Path, broken field.ErrorList) field.ErrorList {
	if !hasRules(props) {
		return nil
	}
	c := &defaults{ctx: ctx, budget: ObjectBudget, broken: broken}
	c.below(props, at, true)
	return c.errs
}

type defaults struct {
	ctx    context.Context
	budget int64
	broken field.ErrorList
	errs   field.ErrorList
}

// below checks the default of a schema and of nested ones. Maps have none inside.
func (c *defaults) below(p *apiextensionsv1.JSONSchemaProps, at *field.Path, root bool) {
	if p == nil || !hasRules(p) || c.budget < 0 {
		return
	}
	if p.Default != nil {
		c.value(p, at.Child("default"), root)
	}
	if p.Items != nil {
		c.below(p.Items.Schema, at.Child("items"), false)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		sub := p.Properties[name]
		c.below(&sub, at.Child("properties").Key(name), false)
	}
}

// value validates a default as an object that does not change, and as a new one.
func (c *defaults) value(p *apiextensionsv1.JSONSchemaProps, at *field.Path, root bool) {
	for _, err := range c.broken {
		if strings.HasPrefix(err.Field, at.String()) {
			return
		}
	}
	var value any
	if err := utiljson.Unmarshal(p.Default.Raw, &value); err != nil || value == nil {
		return
	}
	n, err := builder{}.build(p, root)
	if err != nil || !n.self().typed {
		return
	}
	again := &validation{ctx: c.ctx, base: at, budget: c.budget}
	again.place(n, value, value, correlation{})
	c.errs = append(c.errs, again.errs...)
	left := again.left()
	if len(again.errs) == 0 {
		first := &validation{ctx: c.ctx, base: at, budget: c.budget}
		first.place(n, value, nil, correlation{})
		c.errs = append(c.errs, first.errs...)
		left = min(left, first.left())
	}
	c.budget = left
}

// left is the budget that is left, less than 0 if it was not enough.
func (x *validation) left() int64 {
	if x.spent {
		return -1
	}
	return x.budget
}
