package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// NamespaceExists lets nothing be written in a namespace that does not exist.
type NamespaceExists struct{ Namespaces }

// Validate looks for the namespace of what is written.
func (n *NamespaceExists) Validate(ctx context.Context, a *registry.Admission) error {
	if a.Operation == registry.Connect || a.Target.Namespace == "" || a.Target.Definition.StoragePrefix == n.Prefix {
		return nil
	}
	namespace, err := n.get(ctx, a.Target.Namespace)
	if err != nil {
		return status.Internal(err)
	}
	if namespace == nil {
		return status.NotFound(corev1.Resource("namespaces"), a.Target.Namespace)
	}
	return nil
}

// NamespaceAutoProvision makes the namespace of what is created, if there is none.
type NamespaceAutoProvision struct {
	Namespaces
	// Create creates a namespace that is not there.
	Create func(ctx context.Context, name string) error
}

// Mutate makes the namespace, in the name of the server and not in that of the client.
func (n *NamespaceAutoProvision) Mutate(ctx context.Context, a *registry.Admission) error {
	if a.Operation != registry.Create || a.DryRun() || a.Target.Namespace == "" || a.Target.Definition.StoragePrefix == n.Prefix {
		return nil
	}
	namespace, err := n.get(ctx, a.Target.Namespace)
	if err == nil && namespace == nil {
		err = n.Create(request.With(ctx, nil), a.Target.Namespace)
	}
	if err != nil {
		return a.Forbidden(err)
	}
	return nil
}
