// Package pods implements the admission plugins for pods.
//
// They set fields that decide the placement of a pod, and reject pods that their node does not
// support. They apply to pods and few subresources, never to pod templates. The package handles
// pods as trees, and decodes only the parts that it needs.
package pods

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

var pods = corev1.Resource("pods")

// specOf returns the spec of a pod.
func specOf(a *registry.Admission) object.Tree { return kind.Child(a.Object, "spec") }

// partOf decodes some fields of the spec of a pod.
func partOf(spec object.Tree, fields ...string) *corev1.PodSpec {
	part := object.Tree{}
	for _, field := range fields {
		if v := spec[field]; v != nil {
			part[field] = v
		}
	}
	return kind.ValueOf[corev1.PodSpec](part)
}

// eachContainer calls f with every container of a spec, the name of its list and its index, in the
// order in which Kubernetes validates them.
func eachContainer(spec object.Tree, f func(list string, i int, container object.Tree)) {
	for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for i, v := range kind.List(spec, list) {
			if container, ok := v.(object.Tree); ok {
				f(list, i, container)
			}
		}
	}
}

// TopologyLabels copies the topology labels of a node to its pods. A binding carries them to the
// pod.
type TopologyLabels struct{ Nodes *stored.Lister[corev1.Node] }

var topology = [...]string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion}

// Mutate implements registry.Mutator.
func (p *TopologyLabels) Mutate(ctx context.Context, a *registry.Admission) error {
	var name string
	switch {
	case !a.Gates.On(gate.PodTopologyLabelsAdmission):
	case a.Is(pods, "", registry.Create):
		name = kind.Text(a.Object, "spec", "nodeName")
	case a.Is(pods, "binding", registry.Create) && kind.Text(a.Object, "target", "kind") == "Node":
		name = kind.Text(a.Object, "target", "name")
	}
	if name == "" {
		return nil
	}
	node, err := p.Nodes.Get(ctx, "", name)
	if err != nil || node == nil {
		return err
	}
	for _, key := range topology {
		if value, ok := node.Labels[key]; ok {
			kind.Child(object.Metadata(a.Object), "labels")[key] = value
			a.Changed = true
		}
	}
	return nil
}

// LimitHardAntiAffinity rejects pods with a required anti-affinity whose topology key is not the
// host name.
type LimitHardAntiAffinity struct{}

// Validate implements registry.Validator.
func (LimitHardAntiAffinity) Validate(_ context.Context, a *registry.Admission) error {
	if !a.Is(pods, "", registry.Create, registry.Update) {
		return nil
	}
	for _, v := range kind.List(a.Object, "spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution") {
		term, _ := v.(object.Tree)
		if key := kind.Text(term, "topologyKey"); key != corev1.LabelHostname {
			return a.Forbidden(fmt.Errorf("affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey %v but only key %v is allowed", key, corev1.LabelHostname))
		}
	}
	return nil
}

// nodeOf returns the node of a pod whose spec changes, otherwise nil.
func nodeOf(ctx context.Context, a *registry.Admission, nodes *stored.Lister[corev1.Node]) (*corev1.Node, error) {
	name := kind.Text(a.Object, "spec", "nodeName")
	node, err := nodes.Get(ctx, "", name)
	switch {
	case err != nil:
		return nil, a.Forbidden(fmt.Errorf("failed to get node %q: %w", name, err))
	case node == nil:
		return nil, a.Forbidden(fmt.Errorf("node %q not found", name))
	}
	return node, nil
}

// changesBound reports whether the write changes the spec of a pod that has a node.
func changesBound(ctx context.Context, a *registry.Admission) (bool, error) {
	if kind.Text(a.Object, "spec", "nodeName") == "" {
		return false, nil
	}
	old, err := a.Old(ctx)
	return err == nil && object.Generation(old) != object.Generation(a.Object), err
}
