package pods

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// NodeDeclaredFeatures rejects updates of a pod, and ResourceSlices, that need a feature of nodes that do not declare it. The
// scheduler checks new pods.
type NodeDeclaredFeatures struct{ Nodes *stored.Lister[corev1.Node] }

// Validate implements registry.Validator.
func (p *NodeDeclaredFeatures) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Gates.On(gate.NodeDeclaredFeatures) {
		return nil
	}
	if a.Is(resourceSlices, "", registry.Create, registry.Update) {
		return p.validateSlice(ctx, a)
	}
	if !a.Is(pods, "", registry.Update) && !a.Is(pods, "resize", registry.Update) {
		return nil
	}
	if changes, err := changesBound(ctx, a); err != nil || !changes {
		return err
	}
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	parts := []string{"resources", "initContainers", "volumes"}
	needs := neededFor(partOf(specOf(a), parts...), partOf(kind.Tree(old, "spec"), parts...))
	if len(needs) == 0 {
		return nil
	}
	node, err := nodeOf(ctx, a, p.Nodes)
	if err != nil {
		return err
	}
	needs = slices.DeleteFunc(needs, func(feature string) bool { return slices.Contains(node.Status.DeclaredFeatures, feature) })
	if len(needs) > 0 {
		return a.Forbidden(fmt.Errorf("pod update requires features %s which are not available on node %q", strings.Join(needs, ", "), node.Name))
	}
	return nil
}

// neededFor returns the features that an update of a pod needs, sorted.
func neededFor(spec, old *corev1.PodSpec) (features []string) {
	if !equality.Semantic.DeepEqual(spec.Resources, old.Resources) {
		features = append(features, "InPlacePodLevelResourcesVerticalScaling")
	}
	if resizesInit(spec.InitContainers, old.InitContainers) {
		features = append(features, "InPlacePodVerticalScalingInitContainers")
	}
	if resizesMemory(spec.Volumes, old.Volumes) {
		features = append(features, "InPlacePodVerticalScalingMemoryBackedVolumes")
	}
	return features
}

// resizesInit reports whether the resources of an init container that is not a sidecar change.
func resizesInit(now, was []corev1.Container) bool {
	for i := range min(len(now), len(was)) {
		sidecar := was[i].RestartPolicy != nil && *was[i].RestartPolicy == corev1.ContainerRestartPolicyAlways
		if !sidecar && !reflect.DeepEqual(now[i].Resources, was[i].Resources) {
			return true
		}
	}
	return false
}

// resizesMemory reports whether the size of a volume in memory changes.
func resizesMemory(now, was []corev1.Volume) bool {
	if len(now) != len(was) {
		return false
	}
	for i := range now {
		to, from := now[i].EmptyDir, was[i].EmptyDir
		if now[i].Name == was[i].Name && to != nil && from != nil && to.Medium == corev1.StorageMediumMemory &&
			to.SizeLimit != nil && from.SizeLimit != nil && to.SizeLimit.Cmp(*from.SizeLimit) != 0 {
			return true
		}
	}
	return false
}
