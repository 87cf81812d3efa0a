package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// NamespaceExists rejects writes in a namespace that does not exist.
type NamespaceExists struct{ Namespaces }

// Validate checks that the namespace exists.
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

// NamespaceAutoProvision creates the namespace of a new object if it does not exist.
type NamespaceAutoProvision struct {
	Namespaces
	// Create creates a missing namespace.
	Create func(ctx context.Context, name string) error
}

// Mutate creates the namespace. The server is the user of that write, not the client.
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
