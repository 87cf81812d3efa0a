package lifecycle

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/status"
)

// What a namespace is never without.
const (
	defaultAccount = "default"
	rootCA         = "kube-root-ca.crt"
)

// The annotation of the ConfigMap, by which people know what it is for.
const (
	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// provide makes in a namespace what it is never without, and repairs it.
func (l *Lifecycle) provide(ctx context.Context, name string) error {
	n, err := l.namespace(ctx, name)
	if err != nil || n == nil || n.Deleting || n.phase != corev1.NamespaceActive {
		return err
	}
	err = errors.Join(l.provideAccount(ctx, name), l.provideCA(ctx, name))
	if status.Is(err, metav1.StatusReasonNotFound) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // The namespace went meanwhile.
	}
	return err
}

func (l *Lifecycle) provideAccount(ctx context.Context, namespace string) error {
	d := l.Catalog.Set().Lookup("", "serviceaccounts")
	if d == nil {
		return nil
	}
	found, err := l.read(ctx, d.Key(namespace, defaultAccount))
	if err != nil || found != nil {
		return err
	}
	return l.create(ctx, d, namespace, object.Tree{"metadata": object.Tree{"name": defaultAccount, "namespace": namespace}})
}

func (l *Lifecycle) provideCA(ctx context.Context, namespace string) error {
	d := l.Catalog.Set().Lookup("", "configmaps")
	if d == nil || len(l.CA) == 0 {
		return nil
	}
	data := object.Tree{"ca.crt": string(l.CA)}
	key := d.Key(namespace, rootCA)
	found, err := l.read(ctx, key)
	if err != nil {
		return err
	}
	if found == nil {
		return l.create(ctx, d, namespace, object.Tree{
			"metadata": object.Tree{
				"name": rootCA, "namespace": namespace,
				"annotations": object.Tree{descriptionKey: description},
			},
			"data": data,
		})
	}
	return l.change(ctx, d, key, found.UID, "", func(t object.Tree) bool {
		m := object.Metadata(t)
		annotations, _ := m["annotations"].(object.Tree)
		said, _ := annotations[descriptionKey].(string)
		if said != "" && object.Equal(t["data"], data) {
			return false
		}
		if annotations == nil {
			annotations = object.Tree{}
			m["annotations"] = annotations
		}
		annotations[descriptionKey] = description
		t["data"] = object.Clone(data)
		return true
	})
}
