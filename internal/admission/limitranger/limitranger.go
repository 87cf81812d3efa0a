// Package limitranger implements the admission plugin LimitRanger. It sets default requests and
// limits in containers, and rejects pods and claims outside the limits of the LimitRanges of their
// namespace.
//
// It knows LimitRanges only. Totals of a namespace are the task of quotas.
package limitranger

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// Name is the name of the plugin in Kubernetes.
const Name = "LimitRanger"

// A Plugin enforces LimitRanges.
type Plugin struct {
	Limits *stored.Lister[corev1.LimitRange]
}

// Mutate sets the defaults in the containers of a pod.
func (p *Plugin) Mutate(ctx context.Context, a *registry.Admission) error {
	limits, err := p.limits(ctx, a)
	if err != nil || a.Target.Definition.Plural != "pods" {
		return err
	}
	for _, l := range limits {
		fill(a, l)
	}
	return nil
}

// Validate rejects an object that exceeds a limit.
func (p *Plugin) Validate(ctx context.Context, a *registry.Admission) error {
	limits, err := p.limits(ctx, a)
	if err != nil || len(limits) == 0 {
		return err
	}
	check := claimChecker(a.Object)
	if a.Target.Definition.Plural == "pods" {
		check = podChecker(a.Gates, a.Object)
	}
	for _, l := range limits {
		if errs := check(l); len(errs) > 0 {
			return a.Forbidden(utilerrors.NewAggregate(errs))
		}
	}
	return nil
}

// limits returns the LimitRanges that apply to a write. Most writes have none, and neither has an
// object that is being deleted.
func (p *Plugin) limits(ctx context.Context, a *registry.Admission) ([]*corev1.LimitRange, error) {
	if !limited(a) {
		return nil, nil
	}
	all, err := p.Limits.All(ctx, a.Target.Namespace)
	if err != nil {
		return nil, a.Forbidden(fmt.Errorf("unable to %s %v at this time because there was an error enforcing limit ranges: %w",
			a.Operation, a.Target.Definition.GroupResource(), err))
	}
	var limits []*corev1.LimitRange
	for _, l := range all {
		limits = append(limits, l.Value)
	}
	if len(limits) == 0 || a.Operation == registry.Create {
		return limits, nil
	}
	old, err := a.Old(ctx)
	if err != nil || object.Deleting(old) {
		return nil, err
	}
	return limits, nil
}

// limited reports whether LimitRanges apply to the write: new pods and claims, a resized claim, and
// a resized pod.
func limited(a *registry.Admission) bool {
	d := a.Target.Definition
	if d.Group != "" {
		return false
	}
	create, update := a.Operation == registry.Create, a.Operation == registry.Update
	switch d.Plural {
	case "pods":
		return create && a.Target.Subresource == "" || update && a.Target.Subresource == "resize"
	case "persistentvolumeclaims":
		return (create || update) && a.Target.Subresource == ""
	}
	return false
}

// podChecker returns a function that returns the violations of a pod.
func podChecker(gates *gate.Set, t object.Tree) func(*corev1.LimitRange) []error {
	pod := kind.ValueOf[corev1.Pod](t)
	return func(l *corev1.LimitRange) (errs []error) {
		for i := range l.Spec.Limits {
			item := &l.Spec.Limits[i]
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, list := range [...][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
					for j := range list {
						errs = append(errs, check(item, list[j].Resources.Requests, list[j].Resources.Limits)...)
					}
				}
			case corev1.LimitTypePod:
				requests, limits := ofPod(gates, &pod.Spec)
				errs = append(errs, check(item, requests, limits)...)
			}
		}
		return errs
	}
}

// claimChecker returns a function that returns the violations of a claim.
func claimChecker(t object.Tree) func(*corev1.LimitRange) []error {
	claim := kind.ValueOf[corev1.PersistentVolumeClaim](t)
	return func(l *corev1.LimitRange) (errs []error) {
		for i := range l.Spec.Limits {
			if item := &l.Spec.Limits[i]; item.Type == corev1.LimitTypePersistentVolumeClaim {
				errs = append(errs, checkRequests(item, claim.Spec.Resources.Requests)...)
			}
		}
		return errs
	}
}
