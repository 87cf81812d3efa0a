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

// Namespaces looks up namespaces.
type Namespaces struct {
	Cache *watchcache.Cache
	// Prefix is the storage prefix of namespaces.
	Prefix string
	// Ask looks up a namespace that is not stored, where namespaces belong to a remote cluster. If
	// the namespace exists, Ask stores a copy. It also reports whether the namespace is being
	// deleted. Nil if all namespaces are in the store.
	Ask func(ctx context.Context, name string) (exists, deleting bool, err error)
}

// NamespaceLifecycle rejects creates in a namespace that does not exist or is being deleted, and
// deletions of the system namespaces.
//
// The decision holds until the commit: the namespace is a guard of the write.
type NamespaceLifecycle struct{ Namespaces }

// immortal lists the namespaces that cannot be deleted.
var immortal = [...]string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}

// accessReview may name a namespace that does not exist. Otherwise the response would reveal which
// namespaces exist.
var accessReview = schema.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}

// Mutate checks the namespace of a new object, or the namespace to delete. It changes nothing. It
// is a Mutator so that no other plugin sees an object without a namespace.
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
	if namespace.Deleting() {
		return n.terminating(a)
	}
	a.Guards = append(a.Guards, kv.Guard{Key: n.Prefix + a.Target.Namespace, Revision: namespace.Revision})
	return nil
}

// get returns the namespace of that name, or nil. On a miss it refreshes the cache: another server
// may have created the namespace a moment ago.
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

// ask calls Ask, and then reads the copy that it stored.
func (n *Namespaces) ask(ctx context.Context, key, name string) (*watchcache.Object, error) {
	switch exists, deleting, err := n.Ask(ctx, name); {
	case err != nil:
		return nil, status.Internal(err)
	case !exists:
		return nil, nil
	case deleting:
		return watchcache.Of(key, object.Encoded{Deleting: true}), nil
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
