package networking

import (
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

func ingressClasses() *resource.Definition {
	return kind.Kind[networkingv1.IngressClass, networkingv1.IngressClassList]{
		Definition: resource.Definition{
			Group: networkingv1.GroupName, Plural: "ingressclasses", HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Columns: `
			Name        string name  name        .metadata.name
			Controller  string       .spec.controller  "Controller that is responsible for handling this class"
			Parameters  string       parameters  "A reference to a resource with additional parameters"
			Age
		`,
		Cells: kind.Cells{"name": classAndDefault, "parameters": parameters},
	}.New()
}

// classAndDefault shows which class is that of Ingresses that do not name one.
func classAndDefault(obj map[string]any) any {
	if kind.Text(object.Metadata(obj), "annotations", networkingv1.AnnotationIsDefaultIngressClass) == "true" {
		return object.Name(obj) + " (default)"
	}
	return object.Name(obj)
}

func parameters(obj map[string]any) any {
	ref := kind.Tree(obj, "spec", "parameters")
	if ref == nil {
		return "<none>"
	}
	of := kind.Text(ref, "kind")
	if group, ok := ref["apiGroup"].(string); ok {
		of += "." + group
	}
	return of + "/" + kind.Text(ref, "name")
}
