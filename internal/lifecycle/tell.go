package lifecycle

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// reporter is who reports an object that names an owner it cannot have.
const reporter = "garbage-collector-controller"

// tellElsewhere looks for the owner that an object names in the namespaces that
// it cannot be in, and says so in an event if it is in one of them.
func (l *Lifecycle) tellElsewhere(ctx context.Context, d *resource.Definition, h *header, owner *resource.Definition, r *metav1.OwnerReference) {
	namespaces := l.Catalog.Set().Lookup("", "namespaces")
	found := false
	err := l.pages(ctx, namespaces.StoragePrefix, func(page kv.Page) {
		for i := range page.Records {
			name := strings.TrimPrefix(page.Records[i].Key, namespaces.StoragePrefix)
			if found || name == h.Namespace {
				continue
			}
			other, err := l.read(ctx, owner.Key(name, r.Name))
			found = err == nil && other != nil && other.UID == string(r.UID)
		}
	})
	if err == nil && found {
		err = l.tell(ctx, d, h, r)
	}
	if err != nil {
		l.Logger.Warn("an object that names an owner in another namespace could not be reported", "key", h.key, "error", err)
	}
}

func (l *Lifecycle) tell(ctx context.Context, d *resource.Definition, h *header, r *metav1.OwnerReference) error {
	message := fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
		r.APIVersion, r.Kind, h.Namespace, r.Name, r.UID, h.Namespace)
	l.Logger.Info("an object names an owner in another namespace", "key", h.key, "message", message)
	events := l.Catalog.Set().Lookup("", "events")
	if events == nil {
		return nil
	}
	namespace := h.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	about := object.Tree{"kind": d.Kind, "apiVersion": h.APIVersion(), "name": h.Name, "uid": h.UID}
	if h.Namespace != "" {
		about["namespace"] = h.Namespace
	}
	now := l.Now()
	return l.create(ctx, events, namespace, object.Tree{
		"metadata":           object.Tree{"name": fmt.Sprintf("%s.%x", h.Name, now.UnixNano()), "namespace": namespace},
		"involvedObject":     about,
		"type":               "Warning",
		"reason":             "OwnerRefInvalidNamespace",
		"message":            message,
		"source":             object.Tree{"component": reporter},
		"reportingComponent": reporter,
		"reportingInstance":  "",
		"firstTimestamp":     object.Timestamp(now),
		"lastTimestamp":      object.Timestamp(now),
		"count":              int64(1),
		"eventTime":          nil,
	})
}
