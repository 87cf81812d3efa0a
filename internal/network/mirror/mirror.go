// Package mirror copies the namespaces of a cluster, which this server extends, into the store.
//
// Admission and the namespace controller then find a namespace where they would find the server's
// own. A copy has the name, uid, labels and annotations of the namespace, and is deleted when the
// namespace is. The package deletes no objects in a namespace.
package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/network/cluster"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

const path = "/api/v1/namespaces"

// Namespaces copies the namespaces of a cluster. Several servers may share a store.
type Namespaces struct {
	Cluster *cluster.Client
	Backend kv.Backend
	Kind    *resource.Definition
	Log     *slog.Logger
}

// Follow updates the copies until ctx ends.
func (n *Namespaces) Follow(ctx context.Context) {
	cluster.Follow(ctx, n.Cluster, cluster.Collection{Path: path, MetadataOnly: true}, n, n.Log)
}

// Ask requests a namespace without a copy from the cluster, and creates the copy. It reports
// whether the namespace exists, and whether it is terminating. A terminating namespace gets no
// copy: it has no objects here, and must get none.
func (n *Namespaces) Ask(ctx context.Context, name string) (exists, deleting bool, err error) {
	var found metav1.PartialObjectMetadata
	switch err := n.Cluster.Get(ctx, path+"/"+url.PathEscape(name), &found); {
	case apierrors.IsNotFound(err):
		return false, false, nil
	case err != nil:
		return false, false, err
	case found.DeletionTimestamp != nil:
		return true, true, nil
	}
	return true, false, n.Set(ctx, &found)
}

// Replace implements cluster.Observer. If a namespace vanished without a deletion that this
// server saw, only its copy is removed: while this server is down, the cluster cannot complete
// the deletion of a namespace. So the cluster was probably replaced, or restored from an old
// backup, and the stored objects must survive.
func (n *Namespaces) Replace(ctx context.Context, all []*metav1.PartialObjectMetadata) error {
	there := make(map[string]bool, len(all))
	for _, one := range all {
		there[one.Name] = true
		if err := n.Set(ctx, one); err != nil {
			return err
		}
	}
	within := kv.Range{Prefix: n.Kind.StoragePrefix}
	for {
		page, err := n.Backend.List(ctx, within)
		if err != nil {
			return err
		}
		for _, r := range page.Records {
			within.After = r.Key
			name := strings.TrimPrefix(r.Key, n.Kind.StoragePrefix)
			if there[name] {
				continue
			}
			if exists, _, err := n.Ask(ctx, name); exists || err != nil { // it was created since
				if err != nil {
					return err
				}
				continue
			}
			if err := n.forget(ctx, name, &r); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		within.Revision = page.Revision
	}
}

// forget removes the copy of a missing namespace, unless that copy is terminating.
func (n *Namespaces) forget(ctx context.Context, name string, r *kv.Record) error {
	var copied corev1.Namespace
	if err := json.Unmarshal(r.Value, &copied); err == nil && copied.DeletionTimestamp != nil {
		return nil
	}
	n.Log.Warn("a namespace disappeared from the cluster without a deletion; its objects stay", "namespace", name)
	return ignoreConflict(n.Backend.Commit(ctx, kv.Write{Key: r.Key, Expect: r.Revision}))
}

// Delete implements cluster.Observer. Objects that were created during the end of the deletion
// are deleted too.
func (n *Namespaces) Delete(ctx context.Context, gone *metav1.PartialObjectMetadata) error {
	if gone.DeletionTimestamp == nil {
		now := metav1.Now()
		gone.DeletionTimestamp = &now
	}
	return n.Set(ctx, gone)
}

// Set implements cluster.Observer. On a conflict it starts again.
func (n *Namespaces) Set(ctx context.Context, found *metav1.PartialObjectMetadata) error {
	for {
		done, err := n.set(ctx, found)
		if done || err != nil {
			return err
		}
	}
}

func (n *Namespaces) set(ctx context.Context, found *metav1.PartialObjectMetadata) (done bool, err error) {
	key := n.Kind.Key("", found.Name)
	record, err := n.Backend.Get(ctx, key, kv.Latest)
	missing := errors.Is(err, kv.ErrNotFound)
	if err != nil && !missing {
		return false, err
	}
	if missing && found.DeletionTimestamp != nil {
		return true, nil
	}
	next := copyOf(found)
	expect := kv.Absent
	if !missing {
		var before corev1.Namespace
		if err := json.Unmarshal(record.Value, &before); err != nil {
			return false, err
		}
		// A terminating copy stays terminating, even if the cluster has a new namespace of that
		// name.
		if before.DeletionTimestamp != nil || equal(&before, next) {
			return true, nil
		}
		expect = record.Revision
	}
	value, err := json.Marshal(next)
	if err != nil {
		return false, err
	}
	switch _, err := n.Backend.Commit(ctx, kv.Write{Key: key, Value: value, Expect: expect}); {
	case isConflict(err):
		return false, nil
	default:
		return true, err
	}
}

// copyOf returns the copy of a namespace, with the finalizer of the namespace controller.
func copyOf(found *metav1.PartialObjectMetadata) *corev1.Namespace {
	n := &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{
			Name: found.Name, UID: found.UID, CreationTimestamp: found.CreationTimestamp, DeletionTimestamp: found.DeletionTimestamp,
			Labels: found.Labels, Annotations: found.Annotations,
		},
		Spec:   corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}},
		Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive},
	}
	if n.DeletionTimestamp != nil {
		n.Status.Phase = corev1.NamespaceTerminating
	}
	return n
}

// equal reports whether two copies have equal content.
func equal(a, b *corev1.Namespace) bool {
	return a.UID == b.UID && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && b.DeletionTimestamp == nil
}

func isConflict(err error) bool {
	_, ok := errors.AsType[*kv.ConflictError](err)
	return ok
}

func ignoreConflict(_ int64, err error) error {
	if isConflict(err) {
		return nil
	}
	return err
}
