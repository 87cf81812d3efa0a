package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry/apply"
)

// maxDisrupted limits the evictions that the budget's controller has not processed.
const maxDisrupted = 2000

// budget returns the budget of a pod, also decoded, or nil if it has none.
func (e *evictor) budget(ctx context.Context, c *resource.Change, pod map[string]any) (map[string]any, *policyv1.PodDisruptionBudget, error) {
	all, err := c.Objects.List(ctx, e.budgets, c.Namespace)
	if err != nil {
		return nil, nil, err
	}
	var (
		of    map[string]any
		typed *policyv1.PodDisruptionBudget
	)
	for _, budget := range all {
		b := kind.ValueOf[policyv1.PodDisruptionBudget](budget)
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(kind.Pairs(pod, "metadata", "labels"))) {
			continue // an invalid selector selects nothing
		}
		if of != nil { // a 500 without a reason, as in Kubernetes
			return nil, nil, errors.New("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
		}
		of, typed = budget, b
	}
	return of, typed, nil
}

// toleratesUnready reports whether an unready pod can be evicted without an allowance: always, or
// while enough others are healthy.
func toleratesUnready(b *policyv1.PodDisruptionBudget) bool {
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
}

// take takes one allowance from a budget for a pod. b is the decoded budget.
func take(ctx context.Context, budget map[string]any, b *policyv1.PodDisruptionBudget, pod string, d *resource.Definition) error {
	if err := allows(b); err != nil {
		return err
	}
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
			ObservedGeneration: b.Status.ObservedGeneration,
		})
	}
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[pod] = metav1.Time{Time: time.Now()}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&b.Status)
	if err != nil {
		return status.Internal(err)
	}
	old := object.CloneTree(budget)
	budget["status"] = written
	fields := apply.FieldsOf(d, d.StorageVersion(), "status")
	kind.Put(object.Metadata(budget), "managedFields", object.Metadata(fields.Update(ctx, old, budget, apply.Server))["managedFields"])
	return nil
}

// allows returns an error if a budget does not allow a disruption.
func allows(b *policyv1.PodDisruptionBudget) error {
	const refused = "Cannot evict pod as it would violate the pod's disruption budget."
	s := &b.Status
	switch {
	case s.ObservedGeneration < b.Generation:
		return because(status.TooManyRequests(refused, 10), "The disruption budget %s is still being processed by the server.", b.Name)
	case s.DisruptionsAllowed < 0:
		return because(forbidden(b, "pdb disruptions allowed is negative"),
			"The disruption budget %s does not allow evicting pods currently: pdb disruptions allowed is negative", b.Name)
	case len(s.DisruptedPods) > maxDisrupted:
		return because(forbidden(b, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"),
			"The disruption budget %s does not allow evicting pods currently: too many pending evictions not confirmed by PDB controller", b.Name)
	case s.DisruptionsAllowed > 0:
		return nil
	}
	e := status.TooManyRequests(refused, 0)
	c := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	says := c != nil && c.Status == metav1.ConditionFalse && c.Message != ""
	switch {
	case says && c.Reason == policyv1.SyncFailedReason:
		return because(e, "The disruption budget %s does not allow evicting pods currently because it failed sync: %s", b.Name, c.Message)
	case s.CurrentHealthy <= s.DesiredHealthy:
		return because(e, "The disruption budget %s needs %d healthy pods and has %d currently", b.Name, s.DesiredHealthy, s.CurrentHealthy)
	case says:
		return because(e, "The disruption budget %s does not allow evicting pods currently (%s): %s", b.Name, c.Reason, c.Message)
	default:
		return because(e, "The disruption budget %s does not allow evicting pods currently", b.Name)
	}
}

func forbidden(b *policyv1.PodDisruptionBudget, why string) *status.Error {
	return status.Forbidden(schema.GroupResource{Group: policyv1.GroupName, Resource: "poddisruptionbudget"}, b.Name, errors.New(why))
}

// because adds the cause DisruptionBudget to an error.
func because(e *status.Error, format string, args ...any) error {
	e.ErrStatus.Details.Causes = append(e.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf(format, args...),
	})
	return e
}
