package check

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/jsonschema"
	"github.com/anykind/anykind/internal/schema/structural"
)

// Tolerance names the rules that the schemas of a definition may break, because the schemas of the old
// definition break them too. These rules are newer than the API, so stored schemas may break them.
type Tolerance struct {
	NonStructural    bool // no structure, and so defaults that are not checked
	UnprunedDefaults bool // defaults with fields that the schema does not know
	MergedSetItems   bool // sets whose items are not atomic
	ListKeys         bool // items and keys of sets and map lists that may be absent or null
	UnknownTypes     bool // types that there are not
}

// Learn adds the rules that old, the schema of a version of the old definition, breaks.
func (t *Tolerance) Learn(old *apiextensionsv1.JSONSchemaProps) {
	if old == nil {
		return
	}
	defaults, err := structural.CompileDefaults(old)
	isStructural := err == nil && jsonschema.Supported(old) == nil && len(jsonschema.CheckStructural(old, nil)) == 0
	if !isStructural {
		t.NonStructural = true
	} else if defaults.Unpruned() {
		t.UnprunedDefaults = true
	}
	jsonschema.Walk(old, func(p *apiextensionsv1.JSONSchemaProps) bool {
		if p.Type != "" && !slices.Contains(jsonschema.Types, p.Type) {
			t.UnknownTypes = true
		}
		if p.XListType == nil {
			return true
		}
		c := &ruleCheck{}
		if *p.XListType == "set" {
			c.setItems(jsonschema.Items(p), nil)
			t.MergedSetItems = t.MergedSetItems || len(c.errs) > 0
		}
		c.errs = nil
		if *p.XListType == "set" || *p.XListType == "map" {
			c.mergedItems(p, *p.XListType, nil)
			t.ListKeys = t.ListKeys || len(c.errs) > 0
		}
		return true
	})
}
