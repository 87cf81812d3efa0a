package crd

import (
	"encoding/json"
	"maps"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
)

// typed decodes t into its Go type. All its values had that type once, so an error means that t was
// not completed.
func typed(t object.Tree) (*v1.CustomResourceDefinition, error) {
	crd := &v1.CustomResourceDefinition{}
	if err := json.Unmarshal(object.AppendJSON(nil, t), crd); err != nil {
		return nil, err
	}
	return crd, nil
}

// typedWithoutSchemas is typed for callers that need no schemas, which are most of a
// CustomResourceDefinition.
func typedWithoutSchemas(t object.Tree) (*v1.CustomResourceDefinition, error) {
	small := maps.Clone(t)
	if metadata, ok := t["metadata"].(object.Tree); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		small["metadata"] = metadata
	}
	if spec, ok := t["spec"].(object.Tree); ok {
		spec = maps.Clone(spec)
		small["spec"] = spec
		versions, _ := spec["versions"].([]any)
		light := make([]any, len(versions))
		for i := range versions {
			light[i] = versions[i]
			if v, ok := versions[i].(object.Tree); ok {
				v = maps.Clone(v)
				delete(v, "schema")
				light[i] = v
			}
		}
		spec["versions"] = light
	}
	return typed(small)
}

// setStatus puts a status into t.
func setStatus(t object.Tree, status *v1.CustomResourceDefinitionStatus) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		panic(err) // all values of the type are valid in a tree
	}
	t["status"] = tree
}
