package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// RuntimeClass sets the overhead and the scheduling constraints of a pod's RuntimeClass.
type RuntimeClass struct {
	Classes *stored.Lister[nodev1.RuntimeClass]
}

var errOverhead = errors.New("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")

// Mutate implements registry.Mutator.
func (r *RuntimeClass) Mutate(ctx context.Context, a *registry.Admission) error {
	class, err := r.classOf(ctx, a)
	if err != nil || class == nil {
		return err
	}
	spec := specOf(a)
	if class.Overhead != nil {
		needs := class.Overhead.PodFixed
		if len(kind.Tree(spec, "overhead")) > 0 && !equality.Semantic.DeepEqual(needs, partOf(spec, "overhead").Overhead) {
			return a.Forbidden(errOverhead)
		}
		putOverhead(spec, needs)
		a.Changed = true
	}
	if class.Scheduling != nil {
		if err := selectNodes(spec, class.Scheduling.NodeSelector); err != nil {
			return a.Forbidden(err)
		}
		putTolerations(a, mergeTolerations(partOf(spec, "tolerations").Tolerations, class.Scheduling.Tolerations))
	}
	return nil
}

// Validate implements registry.Validator.
func (r *RuntimeClass) Validate(ctx context.Context, a *registry.Admission) error {
	class, err := r.classOf(ctx, a)
	if err != nil || !a.Is(pods, "", registry.Create) {
		return err
	}
	spec := specOf(a)
	switch {
	case class != nil && class.Overhead != nil:
		if !equality.Semantic.DeepEqual(class.Overhead.PodFixed, partOf(spec, "overhead").Overhead) {
			return a.Forbidden(errOverhead)
		}
	case spec["overhead"] != nil, kind.Tree(a.Read, "spec")["overhead"] != nil: // even an empty one
		return a.Forbidden(errors.New("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"))
	}
	return nil
}

// classOf returns the RuntimeClass that a new pod names, or nil.
func (r *RuntimeClass) classOf(ctx context.Context, a *registry.Admission) (*nodev1.RuntimeClass, error) {
	if !a.Is(pods, "", registry.Create) {
		return nil, nil
	}
	name, ok := kind.Value(a.Object, "spec", "runtimeClassName").(string)
	if !ok {
		return nil, nil
	}
	class, err := r.Classes.Get(ctx, "", name)
	if err == nil && class == nil {
		err = a.Forbidden(fmt.Errorf("pod rejected: RuntimeClass %q not found", name))
	}
	return class, err
}

func putOverhead(spec object.Tree, needs corev1.ResourceList) {
	if needs == nil {
		delete(spec, "overhead")
		return
	}
	overhead := object.Tree{}
	for name, amount := range needs {
		overhead[string(name)] = amount.String()
	}
	spec["overhead"] = overhead
}

// selectNodes merges a node selector into the one of a pod. A conflict is an error.
func selectNodes(spec object.Tree, selector map[string]string) error {
	has := kind.Tree(spec, "nodeSelector")
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		value := selector[key]
		if was, ok := has[key]; ok && was != value {
			return fmt.Errorf("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; pod.spec.nodeSelector[%s] = %s", key, value, key, was)
		}
		kind.Child(spec, "nodeSelector")[key] = value
	}
	return nil
}
