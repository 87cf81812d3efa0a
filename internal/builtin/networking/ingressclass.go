package networking

import (
	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

func ingressClasses() *resource.Definition {
	return kind.Kind[*networkingv1.IngressClass, *networkingv1.IngressClassList]{
		Definition: resource.Definition{
			Group: networkingv1.GroupName, Plural: "ingressclasses", HasGeneration: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Validate: validateClass,
		Columns: `
			Name        string name  name        .metadata.name
			Controller  string       .spec.controller  "Controller that is responsible for handling this class"
			Parameters  string       parameters  "A reference to a resource with additional parameters"
			Age
		`,
		Cells: kind.Cells{"name": classAndDefault, "parameters": parameters},
	}.New()
}

// classAndDefault returns the cell with the controller's class and whether it is the default.
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

func validateClass(c *rule.Check, class, old *networkingv1.IngressClass) {
	c.Walk(&class.Spec, "spec")
	at := c.At("spec", "controller")
	c.Add(validation.IsDomainPrefixedPath(at.Path(), class.Spec.Controller)...)
	if old != nil && class.Spec.Controller != old.Spec.Controller {
		at.Invalid(class.Spec.Controller, apivalidation.FieldImmutableErrorMsg)
	}
	if p := class.Spec.Parameters; p != nil {
		validateScope(c.At("spec", "parameters"), p)
	}
}

// validateScope checks that parameters have a namespace exactly if they are namespaced.
func validateScope(c *rule.Check, p *networkingv1.IngressClassParametersReference) {
	if p.Scope == nil {
		c.At("scope").Required("")
		return
	}
	at := c.At("namespace")
	switch *p.Scope {
	case networkingv1.IngressClassParametersReferenceScopeNamespace:
		if p.Namespace == nil {
			at.Required("`parameters.scope` is set to 'Namespace'")
			return
		}
		at.Invalids(*p.Namespace, apivalidation.ValidateNamespaceName(*p.Namespace, false))
	case networkingv1.IngressClassParametersReferenceScopeCluster:
		if p.Namespace != nil {
			at.Forbidden("`parameters.scope` is set to 'Cluster'")
		}
	default:
		rule.NotSupported(c.At("scope"), *p.Scope, networkingv1.IngressClassParametersReferenceScopeCluster, networkingv1.IngressClassParametersReferenceScopeNamespace)
	}
}
