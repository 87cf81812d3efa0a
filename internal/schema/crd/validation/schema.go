package validation

import (
	"context"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/check"
	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// checkSchema checks a schema and then its rules, which are skipped if it is not structural. The
// errors of the replaced definition's schemas are computed only if there are errors.
func checkSchema(props *v1.JSONSchemaProps, at *field.Path, o celrule.CheckOptions, tolerance func() check.Tolerance) *celrule.Report {
	v := check.Schema(props, at)
	if tolerance != nil && len(v.Errors()) > 0 {
		v = tolerance().Check(props, at)
	}
	report := &celrule.Report{}
	if v.Structural() {
		v.Defaults = append(v.Defaults, celrule.CheckDefaults(context.Background(), props, at, v.Defaults)...)
		if len(v.Defaults) == 0 {
			o.Broken = v.Broken
			report = celrule.Check(props, at, o)
		}
	}
	report.Errors = append(v.Errors(), report.Errors...)
	return report
}

// storedRules has the expressions of the replaced definition. An older server need not understand
// them, because they are stored already.
type storedRules struct {
	// compatible is the release of the oldest server that must understand all others.
	compatible      gate.Release
	rules, messages map[string]bool
	// same are the versions whose schema does not change.
	same map[string]bool
}

// from adds the expressions of the replaced definition.
func (s *storedRules) from(is, was *internalSpec) {
	s.rules, s.messages, s.same = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i := range was.spec.Versions {
		if v := was.spec.Versions[i].Schema; v != nil {
			s.add(v.OpenAPIV3Schema)
		}
	}
	for i := range is.spec.Versions {
		name := is.spec.Versions[i].Name
		now, _ := is.schemaOf(name)
		if old, ok := was.schemaOf(name); ok && equality.Semantic.DeepEqual(now, old) {
			s.same[name] = true
		}
	}
}

func (s storedRules) add(p *v1.JSONSchemaProps) {
	jsonschema.Walk(p, func(p *v1.JSONSchemaProps) bool {
		for _, r := range p.XValidations {
			s.rules[r.Rule] = true
			s.messages[r.MessageExpression] = true
		}
		return true
	})
}

// of returns the options for the rules of a version.
func (s storedRules) of(version string) celrule.CheckOptions {
	return celrule.CheckOptions{
		Compatible:    s.compatible,
		Stored:        func(rule string) bool { return s.rules[rule] },
		StoredMessage: func(expression string) bool { return s.messages[expression] },
		AnyRuleCost:   s.same[version],
	}
}
