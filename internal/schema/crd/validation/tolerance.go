package validation

import (
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/check"
)

// toleranceOf returns the rules that the schemas of an update of before may break. They are computed
// at the first call.
func toleranceOf(before *v1.CustomResourceDefinition) func() check.Tolerance {
	return sync.OnceValue(func() (t check.Tolerance) {
		for i := range before.Spec.Versions {
			if s := before.Spec.Versions[i].Schema; s != nil {
				t.Learn(s.OpenAPIV3Schema)
			}
		}
		return t
	})
}

// tolerate returns the tolerated rules that apply to the schemas of s. Pruning, defaults and the
// extensions of Kubernetes always need a structural schema.
func (s *internalSpec) tolerate(tolerated func() check.Tolerance) func() check.Tolerance {
	if tolerated == nil {
		return nil
	}
	return func() check.Tolerance {
		t := tolerated()
		if t.NonStructural && (!s.spec.PreserveUnknownFields || s.hasDefaults() || s.hasExtensions()) {
			t.NonStructural = false
		}
		return t
	}
}

func (s *internalSpec) hasExtensions() bool {
	return s.anySchema(func(p *v1.JSONSchemaProps) bool {
		return p.XEmbeddedResource || p.XPreserveUnknownFields != nil || p.XIntOrString ||
			len(p.XListMapKeys) > 0 || p.XListType != nil || len(p.XValidations) > 0
	})
}
