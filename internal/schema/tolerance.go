package schema

import (
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
)

// Tolerance names the rules that the schemas of a definition may break, because
// those of the definition that it replaces broke them too. They are younger than
// the API: what is stored may be older.
type Tolerance struct {
	NonStructural    bool // no structure, and hence defaults that are not judged
	UnprunedDefaults bool // defaults with fields that the schema does not know
	MergedSetItems   bool // sets whose items are not atomic
	ListKeys         bool // items and keys of sets and map lists that may be absent or null
	UnknownTypes     bool // types that there are not
}

// Learn adds what has to be tolerated since old, the schema of a version of the
// definition that is replaced, does it.
func (t *Tolerance) Learn(old *apiextensionsv1.JSONSchemaProps) {
	if old == nil {
		return
	}
	root, err := (&builder{ofDefaults: true}).build(old)
	structural := err == nil && Supported(old) == nil && len(checkStructural(old, nil)) == 0
	if !structural {
		t.NonStructural = true
	} else if root.unpruned(root, nil) {
		t.UnprunedDefaults = true
	}
	Walk(old, func(p *apiextensionsv1.JSONSchemaProps) bool {
		if p.Type != "" && !slices.Contains(valueTypes, p.Type) {
			t.UnknownTypes = true
		}
		if p.XListType == nil {
			return true
		}
		c := &ruleCheck{}
		if *p.XListType == listSet {
			c.setItems(itemsOf(p), nil)
			t.MergedSetItems = t.MergedSetItems || len(c.errs) > 0
		}
		c.errs = nil
		if *p.XListType == listSet || *p.XListType == listMap {
			c.mergedItems(p, *p.XListType, nil)
			t.ListKeys = t.ListKeys || len(c.errs) > 0
		}
		return true
	})
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
