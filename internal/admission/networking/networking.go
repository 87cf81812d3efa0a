// Package networking has the admission plugins for Ingresses and Services.
//
// They give Ingresses the default IngressClass, and keep Services from taking addresses that are
// not theirs.
package networking

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

var (
	ingresses = networkingv1.Resource("ingresses")
	services  = corev1.Resource("services")
)

// classAnnotation named the class of an Ingress before the field did.
const classAnnotation = "kubernetes.io/ingress.class"

// DefaultIngressClass gives an Ingress that names no class the default one: the newest of those
// that say that they are.
type DefaultIngressClass struct {
	Classes *stored.Lister[networkingv1.IngressClass]
}

// Mutate implements registry.Mutator.
func (d *DefaultIngressClass) Mutate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(ingresses, "", registry.Create) || kind.Value(a.Object, "spec", "ingressClassName") != nil {
		return nil
	}
	if _, asked := kind.Tree(a.Object, "metadata", "annotations")[classAnnotation]; asked {
		return nil
	}
	all, err := d.Classes.List(ctx, "")
	if err != nil {
		return a.Forbidden(err)
	}
	if class := kind.Newest(all, networkingv1.AnnotationIsDefaultIngressClass); class != "" {
		kind.Child(a.Object, "spec")["ingressClassName"] = class
		a.Extended = true
	}
	return nil
}

// DenyServiceExternalIPs lets a Service have no externalIPs but those that it has.
type DenyServiceExternalIPs struct{}

// Validate implements registry.Validator.
func (DenyServiceExternalIPs) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(services, "", registry.Create, registry.Update) {
		return nil
	}
	asked := kind.Texts(a.Object, "spec", "externalIPs")
	if len(asked) == 0 {
		return nil
	}
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	had := kind.Texts(old, "spec", "externalIPs")
	if slices.ContainsFunc(asked, func(ip string) bool { return !slices.Contains(had, ip) }) {
		return a.Forbidden(errors.New("Use of external IPs is denied by admission control"))
	}
	return nil
}
