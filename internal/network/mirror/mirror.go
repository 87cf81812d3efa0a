// Package mirror keeps copies of the namespaces of a cluster, which this server extends, in the store.
//
// Everything that asks about a namespace finds it there as it does where namespaces are the server's own:
// who admits writes, and the controller that empties namespaces. A copy has the name, the uid, the
// labels and the annotations of the namespace, and is being deleted when the namespace is. The package
// deletes no objects in a namespace.
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

// Namespaces are those of a cluster. Several servers may keep copies in the same store.
type Namespaces struct {
	Cluster *cluster.Client
	Backend kv.Backend
	Kind    *resource.Definition
	Log     *slog.Logger
}

// Follow keeps the copies what they are to be, as long as ctx lasts.
func (n *Namespaces) Follow(ctx context.Context) {
	cluster.Follow(ctx, n.Cluster, cluster.Collection{Path: path, MetadataOnly: true}, n, n.Log)
}

// Ask asks the cluster about a namespace of which there is no copy, and makes one if it is there. It
// reports whether the namespace is there, and whether it is being deleted. Then there is no copy: there
// is nothing to empty, and nothing may be created.
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

// Replace implements cluster.Observer. A copy of a namespace that is not there, and that nobody has seen
// being deleted, goes alone: while this server does not answer, no namespace can be deleted in an
// orderly way. So it is perhaps another cluster, or one that was put back from an older state, and what
// is stored in the namespace is nobody's to delete.
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
			if exists, _, err := n.Ask(ctx, name); exists || err != nil { // it has come since
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

// forget removes the copy of a namespace that is not there, unless it is being emptied.
func (n *Namespaces) forget(ctx context.Context, name string, r *kv.Record) error {
	var copied corev1.Namespace
	if err := json.Unmarshal(r.Value, &copied); err == nil && copied.DeletionTimestamp != nil {
		return nil
	}
	n.Log.Warn("a namespace disappeared from the cluster without a deletion; its objects stay", "namespace", name)
	return ignoreConflict(n.Backend.Commit(ctx, kv.Write{Key: r.Key, Expect: r.Revision}))
}

// Delete implements cluster.Observer: what is left in the namespace was created while the last of it was
// deleted, and goes, too.
func (n *Namespaces) Delete(ctx context.Context, gone *metav1.PartialObjectMetadata) error {
	if gone.DeletionTimestamp == nil {
		now := metav1.Now()
		gone.DeletionTimestamp = &now
	}
	return n.Set(ctx, gone)
}

// Set implements cluster.Observer. What somebody else has written meanwhile is looked at again.
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
		// One that is being emptied goes on, whatever is there by the same name now.
		if before.DeletionTimestamp != nil || same(&before, next) {
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

// copyOf returns the copy of a namespace, with the finalizer of whoever empties it here.
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

// same reports whether a copy says already what another one does.
func same(a, b *corev1.Namespace) bool {
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
