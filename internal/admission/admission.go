package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Namespaces finds namespaces.
type Namespaces struct {
	Cache *watchcache.Cache
	// Prefix is the storage prefix of namespaces.
	Prefix string
	// Ask is asked about a namespace that is not stored where namespaces are those of a cluster: it
	// stores a copy if the namespace is there, or says that it is being deleted. Nil asks nobody.
	Ask func(ctx context.Context, name string) (exists, deleting bool, err error)
}

// NamespaceLifecycle lets nothing be created in a namespace that does not exist
// or is being deleted, and keeps the namespaces that a cluster cannot be without.
//
// What it allows holds at the moment of the write: the namespace becomes a guard
// of the commit.
type NamespaceLifecycle struct{ Namespaces }

// immortal are the namespaces that may not be deleted.
var immortal = [...]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// accessReview may be asked about a namespace that does not exist, so that its answer does not
// tell who may not know.
var accessReview = schema.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}

// Mutate looks at the namespace of what is created, or at the namespace that is
// deleted. It changes nothing: it is a Mutator so that nobody else is asked about an
// object whose namespace is not there.
func (n *NamespaceLifecycle) Mutate(ctx context.Context, a *registry.Admission) error {
	d := a.Target.Definition
	if d.StoragePrefix == n.Prefix {
		return n.validateNamespace(a)
	}
	if a.Operation != registry.Create || !d.Namespaced || d.GroupResource() == accessReview {
		return nil
	}
	namespace, err := n.get(ctx, a.Target.Namespace)
	if err != nil {
		return err
	}
	if namespace == nil {
		return status.NotFound(corev1.Resource("namespaces"), a.Target.Namespace)
	}
	if namespace.Deleting {
		return n.terminating(a)
	}
	a.Guards = append(a.Guards, kv.Guard{Key: n.Prefix + a.Target.Namespace, Revision: namespace.Revision})
	return nil
}

// get returns the namespace of a name, or nil. One that this server has not
// heard of may have been created a moment ago through another.
func (n *Namespaces) get(ctx context.Context, name string) (*watchcache.Object, error) {
	key, namespaces := n.Prefix+name, n.Cache.Resource(n.Prefix)
	found, err := namespaces.Get(ctx, key)
	if err != nil || found != nil {
		return found, err
	}
	if _, err := n.Cache.Fresh(ctx); err != nil {
		return nil, err
	}
	found, err = namespaces.Get(ctx, key)
	if err != nil || found != nil || n.Ask == nil {
		return found, err
	}
	return n.ask(ctx, key, name)
}

// ask looks where namespaces come from.
func (n *Namespaces) ask(ctx context.Context, key, name string) (*watchcache.Object, error) {
	switch exists, deleting, err := n.Ask(ctx, name); {
	case err != nil:
		return nil, status.Internal(err)
	case !exists:
		return nil, nil
	case deleting:
		return &watchcache.Object{Encoded: object.Encoded{Deleting: true}}, nil
	}
	if _, err := n.Cache.Fresh(ctx); err != nil {
		return nil, err
	}
	return n.Cache.Resource(n.Prefix).Get(ctx, key)
}

func (n *NamespaceLifecycle) validateNamespace(a *registry.Admission) error {
	if a.Operation != registry.Delete {
		return nil
	}
	for _, name := range immortal {
		if a.Target.Name == name {
			return status.Forbidden(a.Target.Definition.GroupResource(), name, fmt.Errorf("this namespace may not be deleted"))
		}
	}
	return nil
}

func (n *NamespaceLifecycle) terminating(a *registry.Admission) error {
	namespace := a.Target.Namespace
	e := status.Forbidden(a.Target.Definition.GroupResource(), object.Name(a.Object),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	e.ErrStatus.Details.Causes = append(e.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		Field:   "metadata.namespace",
	})
	return e
}
