package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

var resourceSlices = resourcev1.Resource("resourceslices")

// validateSlice rejects a ResourceSlice with devices that take resources of nodes, unless these nodes declare the feature.
func (p *NodeDeclaredFeatures) validateSlice(ctx context.Context, a *registry.Admission) error {
	if !a.Gates.On(gate.DRANodeAllocatableResources) {
		return nil
	}
	spec := kind.Tree(a.Object, "spec")
	all := sync.OnceValues(func() ([]*corev1.Node, error) { return p.Nodes.List(ctx, "") })
	for _, item := range kind.List(spec, "devices") {
		device, _ := item.(object.Tree)
		name := kind.Text(device, "name")
		if basic := kind.Tree(device, "basic"); basic != nil { // in v1beta1
			device = basic
		}
		if len(kind.Tree(device, "nodeAllocatableResources")) == 0 {
			continue
		}
		place := spec
		if spec["perDeviceNodeSelection"] == true {
			place = device
		}
		nodes, err := p.nodesOf(ctx, place, all)
		if errors.Is(err, errNotFound) {
			return a.Forbidden(fmt.Errorf("node %q not found for device %q", kind.Text(place, "nodeName"), name))
		}
		if err != nil {
			return err
		}
		for _, node := range nodes {
			if !slices.Contains(node.Status.DeclaredFeatures, string(gate.DRANodeAllocatableResources)) {
				return a.Forbidden(fmt.Errorf("node %q does not support %s feature", node.Name, gate.DRANodeAllocatableResources))
			}
		}
	}
	return nil
}

var errNotFound = errors.New("node not found")

// nodesOf returns the nodes of a device, from a slice or a device: one by its name, those of a selector, or all. Validation
// has found one of the three.
func (p *NodeDeclaredFeatures) nodesOf(ctx context.Context, place object.Tree, all func() ([]*corev1.Node, error)) ([]*corev1.Node, error) {
	if name := kind.Text(place, "nodeName"); name != "" {
		node, err := p.Nodes.Get(ctx, "", name)
		if err == nil && node == nil {
			err = errNotFound
		}
		return []*corev1.Node{node}, err
	}
	nodes, err := all()
	selected := kind.Tree(place, "nodeSelector")
	if err != nil || selected == nil {
		return nodes, err
	}
	selector, err := nodeaffinity.NewNodeSelector(kind.ValueOf[corev1.NodeSelector](selected))
	if err != nil {
		return nil, status.BadRequest("failed to create node selector: %v", err)
	}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool { return !selector.Match(n) }), nil
}
