package pod

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// An evictor evicts pods if their budgets allow it.
type evictor struct{ pods, budgets *resource.Definition }

// Create evicts the pod of a request. It retries after concurrent changes.
func (e *evictor) Create(ctx context.Context, c *resource.Change) (map[string]any, error) {
	if c.Name != object.Name(c.Object) {
		return nil, status.BadRequest("name in URL does not match name in Eviction object")
	}
	options, err := evictionOptions(c)
	if err != nil {
		return nil, err
	}
	for {
		err := e.evict(ctx, c, options)
		if !errors.Is(err, resource.ErrOvertaken) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// evictionOptions returns the delete options. The body and the query can request a dry run.
func evictionOptions(c *resource.Change) (*metav1.DeleteOptions, error) {
	options := kind.ValueOf[metav1.DeleteOptions](kind.Tree(c.Object, "deleteOptions"))
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if ignore := options.IgnoreStoreReadErrorWithClusterBreakingPotential; ignore != nil && *ignore {
		return nil, status.Invalid(policyv1.SchemeGroupVersion.WithKind("Eviction").GroupKind(), c.Name, field.ErrorList{
			field.Invalid(field.NewPath("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"), true, "can not be set for pod eviction, try after removing the option"),
		})
	}
	if !c.DryRun {
		return options, nil
	}
	asked := []string{metav1.DryRunAll}
	if len(options.DryRun) > 0 && !slices.Equal(options.DryRun, asked) {
		return nil, fmt.Errorf("Non-matching dry-run options in request and content: %v and %v", asked, options.DryRun)
	}
	options.DryRun = asked
	return options, nil
}

// evict deletes the present pod.
//
// One commit stores the reduced allowance of the budget and the mark of the pod, on condition that
// both are unchanged. So no two evictions use the same allowance, and no allowance is used for an
// unmarked pod.
func (e *evictor) evict(ctx context.Context, c *resource.Change, options *metav1.DeleteOptions) error {
	pod, err := c.Objects.Get(ctx, e.pods, c.Namespace, c.Name)
	if err != nil {
		return err
	}
	dry := len(options.DryRun) > 0
	is := healthOf(pod)
	written := []resource.Object{{Definition: e.pods, Tree: pod}}
	if is != over && is != pending {
		budget, allowance, err := e.budget(ctx, c, pod)
		if err != nil {
			return err
		}
		if budget != nil && is == unready && toleratesUnready(allowance) {
			is = unneeded
		} else if budget != nil {
			if err := take(ctx, budget, allowance, c.Name, e.budgets); err != nil {
				return err
			}
		}
		if budget != nil {
			written = append(written, resource.Object{Definition: e.budgets, Tree: budget})
		}
	}
	if err := checkDeletion(pod, options); err != nil {
		return err
	}
	if dry {
		return c.Objects.Delete(ctx, e.pods, c.Namespace, c.Name, options)
	}
	setCondition(pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
	})
	now, err := c.Objects.Replace(ctx, written...)
	switch {
	case errors.Is(err, resource.ErrOvertaken) && namesRevision(options):
		return status.Conflict(podKind, c.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case err != nil:
		return err
	}
	return e.remove(ctx, c, options, now, is == pending || is == unneeded)
}

// remove deletes the pod at a resourceVersion. If its state was the reason to allow the eviction,
// that must not have changed.
func (e *evictor) remove(ctx context.Context, c *resource.Change, options *metav1.DeleteOptions, at string, unchanged bool) error {
	asked := namesRevision(options)
	if asked || unchanged {
		options = options.DeepCopy()
		if options.Preconditions == nil {
			options.Preconditions = &metav1.Preconditions{}
		}
		options.Preconditions.ResourceVersion = &at
	}
	err := c.Objects.Delete(ctx, e.pods, c.Namespace, c.Name, options)
	if unchanged && !asked && status.Is(err, metav1.StatusReasonConflict) {
		return resource.ErrOvertaken
	}
	return err
}

// health is the state of a pod for its budget.
type health int

const (
	healthy  health = iota // counted by the budget
	over                   // terminated or in deletion
	pending                // not started
	unready                // not counted, but the budget may need it
	unneeded               // not needed as long as it is unready
)

func healthOf(pod map[string]any) health {
	switch phase := corev1.PodPhase(kind.Text(pod, "status", "phase")); {
	case phase == corev1.PodSucceeded, phase == corev1.PodFailed, object.Deleting(pod):
		return over
	case phase == corev1.PodPending:
		return pending
	case !isReady(pod):
		return unready
	default:
		return healthy
	}
}

// podKind is the resource in conflict errors of deletions.
var podKind = schema.GroupResource{Resource: "Pod"}

func namesRevision(options *metav1.DeleteOptions) bool {
	return options.Preconditions != nil && options.Preconditions.ResourceVersion != nil
}

// checkDeletion checks the preconditions of the options.
func checkDeletion(pod map[string]any, options *metav1.DeleteOptions) error {
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return status.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	p := options.Preconditions
	if p == nil {
		return nil
	}
	if p.UID != nil && *p.UID != "" && string(*p.UID) != object.UID(pod) {
		return status.Conflict(podKind, object.Name(pod), fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, object.UID(pod)))
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != "" && *p.ResourceVersion != object.ResourceVersion(pod) {
		return status.Conflict(podKind, object.Name(pod), fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, object.ResourceVersion(pod)))
	}
	return nil
}
