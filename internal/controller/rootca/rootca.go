// Package rootca creates the ConfigMap kube-root-ca.crt in every namespace, and repairs it. It has
// the CA bundle with which clients verify the server.
package rootca

import (
	"context"
	"strings"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
)

// Name is the name of the controller.
const Name = "root-ca-certificate-publisher-controller"

// ConfigMap is the name of the ConfigMap in every namespace.
const ConfigMap = "kube-root-ca.crt"

// The annotation that describes the ConfigMap.
const (
	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// A Controller publishes certificates. The key of its tasks is the name of a
// namespace.
type Controller struct {
	objects                *controller.Objects
	queue                  *controller.Queue
	namespaces, configMaps string // key prefixes
	ca                     []byte
}

// New returns the constructor of the controller for a CA bundle. Without a bundle there is no such
// ConfigMap.
func New(ca []byte) func(o *controller.Objects, q *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{objects: o, queue: q, namespaces: o.Prefix("", "namespaces"), configMaps: o.Prefix("", "configmaps"), ca: ca}
	}
}

// Keys returns the key prefixes of namespaces and ConfigMaps.
func (c *Controller) Keys() []string {
	if len(c.ca) == 0 {
		return nil
	}
	return []string{c.namespaces, c.configMaps}
}

// See queues a namespace that may lack the ConfigMap, or whose ConfigMap was changed or deleted.
func (c *Controller) See(e *controller.Event) {
	if name := e.ActiveNamespace(c.namespaces); name != "" {
		c.queue.Add(controller.Task{Key: name})
	}
	if !e.Loading && strings.HasPrefix(e.Key, c.configMaps) && strings.HasSuffix(e.Key, "/"+ConfigMap) {
		c.queue.Add(controller.Task{Key: controller.NamespaceOf(e.Key)})
	}
}

// Do creates or repairs the ConfigMap of a namespace.
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
		if was, _ := object.Annotation(t, descriptionKey); was != "" && object.Equal(t["data"], data) {
			return false
		}
		object.SetAnnotation(t, descriptionKey, description)
		t["data"] = object.Clone(data)
		return true
	})
}
