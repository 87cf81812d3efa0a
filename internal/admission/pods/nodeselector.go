package pods

import (
	"bytes"
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// NodeSelector restricts the pods of a namespace to some nodes. The selector comes from the
// namespace, otherwise from the configuration.
type NodeSelector struct {
	Namespaces *stored.Lister[corev1.Namespace]
	// Selectors are the selectors of the configuration: the allowed node labels by namespace.
	Selectors map[string]string
}

const (
	// selectorAnnotation is the annotation of a namespace with its node selector.
	selectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"
	// everyNamespace is the key of the default selector in the configuration.
	everyNamespace = "clusterDefaultNodeSelector"
)

// ReadNodeSelectors reads the configuration of NodeSelector, which has no kind. As in Kubernetes,
// unreadable parts are ignored.
func ReadNodeSelectors(config []byte) map[string]string {
	var c struct {
		Selectors map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	for d := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(config), 4096); ; {
		if err := d.Decode(&c); err != nil {
			return c.Selectors
		}
	}
}

// Mutate implements registry.Mutator.
func (n *NodeSelector) Mutate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(pods, "", registry.Create) {
		return nil
	}
	selector, err := n.selectorOf(ctx, a)
	if err != nil {
		return err
	}
	for key, value := range selector {
		kind.Child(specOf(a), "nodeSelector")[key] = value
		a.Changed = true
	}
	return n.allow(a)
}

// Validate implements registry.Validator.
func (n *NodeSelector) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(pods, "", registry.Create) {
		return nil
	}
	if _, err := n.selectorOf(ctx, a); err != nil {
		return err
	}
	return n.allow(a)
}

// selectorOf returns the node selector for a pod of the namespace. A conflict with the selector of
// the pod is an error.
func (n *NodeSelector) selectorOf(ctx context.Context, a *registry.Admission) (labels.Set, error) {
	namespace, err := namespaceOf(ctx, a, n.Namespaces)
	if err != nil {
		return nil, err
	}
	annotation, ok := namespace.Annotations[selectorAnnotation]
	if !ok {
		annotation = n.Selectors[everyNamespace]
	}
	selector, err := labels.ConvertSelectorToLabelsMap(annotation)
	if err != nil {
		return nil, err
	}
	if labels.Conflicts(selector, kind.Pairs(a.Object, "spec", "nodeSelector")) {
		return nil, refusePod(a, "pod node label selector conflicts with its namespace node label selector")
	}
	return selector, nil
}

// allow checks that the node selector of a pod stays within the one that the configuration allows
// for its namespace.
func (n *NodeSelector) allow(a *registry.Admission) error {
	allowed, err := labels.ConvertSelectorToLabelsMap(n.Selectors[a.Target.Namespace])
	if err != nil {
		return err
	}
	for key, value := range kind.Pairs(a.Object, "spec", "nodeSelector") {
		if may, ok := allowed[key]; len(allowed) > 0 && (!ok || may != value) {
			return refusePod(a, "pod node label selector labels conflict with its namespace whitelist")
		}
	}
	return nil
}

// refusePod returns a Forbidden error with the name of the pod, which may be empty.
func refusePod(a *registry.Admission, why string) error {
	return status.Forbidden(pods, object.Name(a.Object), errors.New(why))
}

// namespaceOf returns the namespace of a pod.
func namespaceOf(ctx context.Context, a *registry.Admission, namespaces *stored.Lister[corev1.Namespace]) (*corev1.Namespace, error) {
	namespace, err := namespaces.Get(ctx, "", a.Target.Namespace)
	switch {
	case err != nil:
		return nil, status.Internal(err)
	case namespace == nil:
		return nil, status.NotFound(corev1.Resource("namespaces"), a.Target.Namespace)
	}
	return namespace, nil
}
