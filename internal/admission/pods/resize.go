package pods

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/resource"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// Resize rejects a resize that exceeds the allocatable resources of the node.
type Resize struct{ Nodes *stored.Lister[corev1.Node] }

// Validate implements registry.Validator.
func (r *Resize) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(pods, "resize", registry.Update) {
		return nil
	}
	if changes, err := changesBound(ctx, a); err != nil || !changes {
		return err
	}
	node, err := nodeOf(ctx, a, r.Nodes)
	if err != nil {
		return err
	}
	if os, ok := node.Labels[corev1.LabelOSStable]; ok && os != "linux" {
		return because(a, "UnsupportedPlatform", fmt.Errorf("pod resize is only supported on linux nodes, node %q is %q", node.Name, os))
	}
	if err := fits(kind.ValueOf[corev1.Pod](a.Object), node.Status.Allocatable); err != nil {
		return because(a, "NodeCapacity", err)
	}
	return nil
}

// because returns a Forbidden error with a cause that clients can parse.
func because(a *registry.Admission, cause metav1.CauseType, err error) error {
	refused := a.Forbidden(err)
	if e, ok := refused.(*status.Error); ok {
		e.ErrStatus.Details.Causes = append(e.ErrStatus.Details.Causes, metav1.StatusCause{Type: cause})
	}
	return refused
}

func fits(pod *corev1.Pod, has corev1.ResourceList) error {
	asked := resource.PodRequests(pod, resource.PodResourcesOptions{})
	var short []string
	if cpu := asked[corev1.ResourceCPU]; cpu.Cmp(*has.Cpu()) > 0 {
		short = append(short, fmt.Sprintf("cpu, requested: %d, allocatable: %d", cpu.MilliValue(), has.Cpu().MilliValue()))
	}
	if memory := asked[corev1.ResourceMemory]; memory.Cmp(*has.Memory()) > 0 {
		short = append(short, fmt.Sprintf("memory, requested: %d, allocatable: %d", memory.Value(), has.Memory().Value()))
	}
	if len(short) > 0 {
		return fmt.Errorf("node didn't have enough allocatable resources: %s", strings.Join(short, "; "))
	}
	return nil
}
