// Package networking implements the admission plugins for Ingresses and Services.
//
// They set the default IngressClass of Ingresses, and reject external IPs of Services.
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

// classAnnotation is the older form of the field ingressClassName.
const classAnnotation = "kubernetes.io/ingress.class"

// DefaultIngressClass sets the default class of an Ingress without one. If several classes are the
// default, the newest wins.
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

// DenyServiceExternalIPs rejects new externalIPs of a Service.
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
