package garbage

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// reportElsewhere looks for the owner in namespaces where it is not allowed. If it finds one, it
// creates an Event.
func (c *Controller) reportElsewhere(ctx context.Context, d *resource.Definition, h *controller.Header, owner *resource.Definition, r *metav1.OwnerReference) {
	namespaces := c.objects.Lookup("", "namespaces")
	found := false
	err := c.objects.Pages(ctx, namespaces.StoragePrefix, func(page kv.Page) {
		for i := range page.Records {
			name := strings.TrimPrefix(page.Records[i].Key, namespaces.StoragePrefix)
			if found || name == h.Namespace {
				continue
			}
			other, err := c.objects.Read(ctx, owner.Key(name, r.Name))
			found = err == nil && other != nil && other.UID == string(r.UID)
		}
	})
	if err == nil && found {
		err = c.report(ctx, d, h, r)
	}
	if err != nil {
		c.objects.Logger.Warn("an object that names an owner in another namespace could not be reported", "key", h.Key, "error", err)
	}
}

func (c *Controller) report(ctx context.Context, d *resource.Definition, h *controller.Header, r *metav1.OwnerReference) error {
	message := fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
		r.APIVersion, r.Kind, h.Namespace, r.Name, r.UID, h.Namespace)
	c.objects.Logger.Info("an object names an owner in another namespace", "key", h.Key, "message", message)
	events := c.objects.Lookup("", "events")
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
	now := c.objects.Now()
	return c.objects.Create(ctx, events, namespace, object.Tree{
		"metadata":           object.Tree{"name": fmt.Sprintf("%s.%x", h.Name, now.UnixNano()), "namespace": namespace},
		"involvedObject":     about,
		"type":               "Warning",
		"reason":             "OwnerRefInvalidNamespace",
		"message":            message,
		"source":             object.Tree{"component": Name},
		"reportingComponent": Name,
		"reportingInstance":  "",
		"firstTimestamp":     object.Timestamp(now),
		"lastTimestamp":      object.Timestamp(now),
		"count":              int64(1),
		"eventTime":          nil,
	})
}
