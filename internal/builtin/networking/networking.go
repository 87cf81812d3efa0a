// Package networking has the built-in kinds of networking.k8s.io.
//
// It knows what one may say. Nothing here routes a packet.
package networking

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{ingressClasses(), ingresses(), networkPolicies()}
}

func networkPolicies() *resource.Definition {
	return kind.Kind[networkingv1.NetworkPolicy, networkingv1.NetworkPolicyList]{
		Definition: resource.Definition{
			Group: networkingv1.GroupName, Plural: "networkpolicies", ShortNames: []string{"netpol"}, Namespaced: true,
			HasGeneration: true,
			Strategy:      resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Columns: `
			Pod-Selector  string  selector  .spec.podSelector
			Age
		`,
		Cells: kind.Cells{"selector": func(obj map[string]any) any {
			return metav1.FormatLabelSelector(kind.ValueOf[metav1.LabelSelector](kind.Tree(obj, "spec", "podSelector")))
		}},
	}.New()
}
