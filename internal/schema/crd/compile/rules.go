package compile

import (
	"context"
	"fmt"
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry/convert"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// byRules returns the conversion of a CustomResourceDefinition with rules. The rules are compiled at the first
// conversion.
func byRules(crd *v1.CustomResourceDefinition, schemas Schemas) func(context.Context, []map[string]any, string) ([]map[string]any, error) {
	small := &v1.CustomResourceDefinition{Spec: v1.CustomResourceDefinitionSpec{Group: crd.Spec.Group}}
	small.Name, small.Annotations = crd.Name, map[string]string{conversion.Annotation: crd.Annotations[conversion.Annotation]}
	for i := range crd.Spec.Versions {
		small.Spec.Versions = append(small.Spec.Versions, v1.CustomResourceDefinitionVersion{Name: crd.Spec.Versions[i].Name})
	}
	compiled := sync.OnceValues(func() (*conversion.Converter, error) {
		c, report := conversion.Of(small, schemas)
		if err := report.Broken(); err != nil {
			return nil, fmt.Errorf("the conversion rules of %s do not fit its schemas: %w", small.Name, err)
		}
		return c, nil
	})
	return func(ctx context.Context, objs []map[string]any, version string) ([]map[string]any, error) {
		c, err := compiled()
		if err != nil {
			return nil, err
		}
		for _, t := range objs {
			if convert.Empty(t) {
				t["apiVersion"] = crd.Spec.Group + "/" + version
				continue
			}
			if err := c.Convert(ctx, t, version); err != nil {
				return nil, unconverted(t, err)
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
		return objs, nil
	}
}

// unconverted adds the name of the object to an error. A *field.Error stays in its chain.
func unconverted(t object.Tree, err error) error {
	return fmt.Errorf("%s cannot be converted: %w", object.Name(t), err)
}
