// Package rootca creates the ConfigMap kube-root-ca.crt in every namespace, and repairs it.
// It holds the certificates by which clients trust the server.
package rootca

import (
	"context"
	"strings"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
)

// Name is what the controller is called.
const Name = "root-ca-certificate-publisher-controller"

// ConfigMap is the name of the one that every namespace has.
const ConfigMap = "kube-root-ca.crt"

// The annotation of the ConfigMap, by which people know what it is for.
const (
	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// A Controller publishes certificates. The key of its tasks is the name of a
// namespace.
type Controller struct {
	objects                *controller.Objects
	queue                  *controller.Queue
	namespaces, configMaps string // prefixes of keys
	ca                     []byte
}

// New returns what makes the controller for a bundle of certificates. Without one
// there is no such ConfigMap.
func New(ca []byte) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{objects: o, queue: q, namespaces: o.Prefix("", "namespaces"), configMaps: o.Prefix("", "configmaps"), ca: ca}
	}
}

// Keys returns those of namespaces and ConfigMaps.
func (c *Controller) Keys() []string {
	if len(c.ca) == 0 {
		return nil
	}
	return []string{c.namespaces, c.configMaps}
}

// See notices that a namespace may lack the ConfigMap, and that the ConfigMap was
// changed or deleted.
func (c *Controller) See(e *controller.Event) {
	if name := e.ActiveNamespace(c.namespaces); name != "" {
		c.queue.Add(controller.Task{Key: name})
	}
	if !e.Loading && strings.HasPrefix(e.Key, c.configMaps) && strings.HasSuffix(e.Key, "/"+ConfigMap) {
		c.queue.Add(controller.Task{Key: controller.NamespaceOf(e.Key)})
	}
}

// Do makes the ConfigMap in a namespace what it is to be.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	return c.objects.InNamespace(ctx, t.Key, func() error { return c.publish(ctx, t.Key) })
}

func (c *Controller) publish(ctx context.Context, namespace string) error {
	d := c.objects.Lookup("", "configmaps")
	data := object.Tree{"ca.crt": string(c.ca)}
	key := d.Key(namespace, ConfigMap)
	found, err := c.objects.Read(ctx, key)
	if err != nil {
		return err
	}
	if found == nil {
		return c.objects.Create(ctx, d, namespace, object.Tree{
			"metadata": object.Tree{
				"name": ConfigMap, "namespace": namespace,
				"annotations": object.Tree{descriptionKey: description},
			},
			"data": data,
		})
	}
	return c.objects.Change(ctx, d, key, found.UID, "", func(t object.Tree) bool {
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
