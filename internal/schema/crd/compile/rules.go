package compile

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// RulesAnnotation of a CustomResourceDefinition has the rules of its conversion: the spec of a
// CRDConversionConfig, in JSON or YAML. With rules, spec.conversion is not used.
const RulesAnnotation = "anykind.dev/conversion"

// RulesPath is the path of the annotation in errors.
func RulesPath() *field.Path { return field.NewPath("metadata", "annotations").Key(RulesAnnotation) }

// Rules compiles the rules of a CustomResourceDefinition. It returns nil without errors for one without
// rules.
func Rules(crd *v1.CustomResourceDefinition, schemas Schemas) (*conversion.Converter, *conversion.Report) {
	text, ok := crd.Annotations[RulesAnnotation]
	if !ok {
		return nil, &conversion.Report{}
	}
	rules, err := conversion.ParseText(text)
	if err != nil {
		return nil, &conversion.Report{Errors: field.ErrorList{field.Invalid(RulesPath(), text, err.Error())}}
	}
	return CompileRules(rules, crd, schemas, RulesPath())
}

// CompileRules compiles rules for a CustomResourceDefinition. at is the path of the rules.
func CompileRules(rules *conversion.Rules, crd *v1.CustomResourceDefinition, schemas Schemas, at *field.Path) (*conversion.Converter, *conversion.Report) {
	all := map[string]*v1.JSONSchemaProps{}
	for i := range crd.Spec.Versions {
		name := crd.Spec.Versions[i].Name
		data, err := schemas(name)
		schema := &v1.JSONSchemaProps{}
		if err == nil && data != nil {
			err = json.Unmarshal(data, schema)
		}
		if err != nil {
			return nil, &conversion.Report{Errors: field.ErrorList{field.InternalError(at, err)}}
		}
		all[name] = schema
	}
	return conversion.Compile(rules, crd.Spec.Group, all, at)
}

// SchemasOf returns the schemas of a CustomResourceDefinition that has them.
func SchemasOf(crd *v1.CustomResourceDefinition) Schemas {
	return func(version string) ([]byte, error) {
		for i := range crd.Spec.Versions {
			if v := &crd.Spec.Versions[i]; v.Name == version && v.Schema != nil {
				return json.Marshal(v.Schema.OpenAPIV3Schema)
			}
		}
		return nil, nil
	}
}

// byRules returns the conversion of a CustomResourceDefinition with rules, which it compiles at the first
// conversion.
func byRules(crd *v1.CustomResourceDefinition, schemas Schemas) func(context.Context, []map[string]any, string) ([]map[string]any, error) {
	small := &v1.CustomResourceDefinition{Spec: v1.CustomResourceDefinitionSpec{Group: crd.Spec.Group}}
	small.Name, small.Annotations = crd.Name, map[string]string{RulesAnnotation: crd.Annotations[RulesAnnotation]}
	for i := range crd.Spec.Versions {
		small.Spec.Versions = append(small.Spec.Versions, v1.CustomResourceDefinitionVersion{Name: crd.Spec.Versions[i].Name})
	}
	compiled := sync.OnceValues(func() (*conversion.Converter, error) {
		c, report := Rules(small, schemas)
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
			if empty(t) {
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

// empty reports whether an object has nothing to convert. Accounts of managed fields start from empty
// objects.
func empty(t object.Tree) bool {
	for name, v := range t {
		if m, ok := v.(object.Tree); name != "apiVersion" && name != "kind" && (name != "metadata" || ok && len(m) > 0) {
			return false
		}
	}
	return true
}

// unconverted adds the name of the object to an error, which may be a *field.Error.
func unconverted(t object.Tree, err error) error {
	return fmt.Errorf("%s cannot be converted: %w", object.Name(t), err)
}
