package networking

import (
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

func ingresses() *resource.Definition {
	return kind.Kind[*networkingv1.Ingress, *networkingv1.IngressList]{
		Definition: resource.Definition{
			Group: networkingv1.GroupName, Plural: "ingresses", ShortNames: []string{"ing"}, Namespaced: true,
			HasGeneration: true, StoragePrefix: resource.BuiltInPrefix("ingress"),
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		StatusKeeps: "spec",
		Validate:    validateIngress, ValidateStatus: validateIngressStatus,
		Warn: warnOfIngress, WarnOfStatus: warnOfIngressStatus,
		Columns: `
			Class    string  .spec.ingressClassName:<none>  "The name of the IngressClass resource that should be used for additional configuration"
			Hosts    string  hosts    "Hosts that incoming requests are matched against before the ingress rule"
			Address  string  address  "Address is a list containing ingress points for the load-balancer"
			Ports    string  ports    "Ports of TLS configurations that open"
			Age
		`,
		Cells: kind.Cells{"hosts": hosts, "address": address, "ports": ports},
	}.New()
}

// hosts returns the cell with up to three hosts.
func hosts(obj map[string]any) any {
	const most = 3
	var named []string
	rules := kind.List(obj, "spec", "rules")
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		if len(named) == most {
			return fmt.Sprintf("%s + %d more...", strings.Join(named, ","), len(rules)-most)
		}
		if host := kind.Text(rule, "host"); host != "" {
			named = append(named, host)
		}
	}
	if len(named) == 0 {
		return "*"
	}
	return strings.Join(named, ",")
}

func address(obj map[string]any) any {
	return strings.Join(kind.IngressPoints(kind.Tree(obj, "status")), ",")
}

func ports(obj map[string]any) any {
	if len(kind.List(obj, "spec", "tls")) > 0 {
		return "80, 443"
	}
	return "80"
}
