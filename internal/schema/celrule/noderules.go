package celrule

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// A rule is one of x-kubernetes-validations.
type rule struct {
	apiextensionsv1.ValidationRule
	// where is FieldPath in the form of paths in errors.
	where string
}

func newRule(r *apiextensionsv1.ValidationRule, at *apiextensionsv1.JSONSchemaProps) *rule {
	out := &rule{ValidationRule: *r}
	if r.FieldPath != "" {
		if where, _, err := jsonschema.FollowPath(r.FieldPath, at, true); err == nil {
			out.where = where.String()
		}
	}
	return out
}

func (r *rule) optionalOld() bool { return r.OptionalOldSelf != nil && *r.OptionalOldSelf }

// findRules finds the rules below n. Rules in places without a CEL type are ignored: self would have
// no type.
func (n *node) findRules() {
	if n.kind == listKind && n.items != nil && n.items.ruled && n.typed {
		n.ruledItems = n.items
	}
	if n.kind == objectKind && n.additional != nil && n.additional.ruled && n.typed {
		n.ruledEntries = n.additional
	}
	for name, c := range n.properties {
		if !c.ruled || n.kind != objectKind {
			continue
		}
		if name == "metadata" && n.resource != nil && n.resource != n {
			c = c.insideResource(n.resource.properties[name])
		}
		if c.ruled && c.seen().typed {
			n.ruledFields = append(n.ruledFields, fieldOf{name: name, node: c})
		}
	}
	order.Stable(n.ruledFields, func(a, b fieldOf) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	n.ruled = len(n.rules) > 0 || n.ruledItems != nil || n.ruledEntries != nil || len(n.ruledFields) > 0
	if len(n.rules) > 0 {
		n.programs = &programs{}
	}
}

// insideResource returns n, a metadata node, with only those rules of fields that also exist in seen,
// the metadata as expressions see it.
func (n *node) insideResource(seen *node) *node {
	m := *n
	m.selfType = seen
	m.ruledItems, m.ruledEntries = nil, nil
	m.ruledFields = slices.DeleteFunc(slices.Clone(n.ruledFields), func(f fieldOf) bool { return seen.properties[f.name] == nil })
	m.ruled = len(m.rules) > 0 || len(m.ruledFields) > 0
	if n.programs != nil {
		m.programs = &programs{}
	}
	return &m
}
