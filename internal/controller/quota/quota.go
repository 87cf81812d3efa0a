// Package quota maintains the status of ResourceQuotas: the limits and the usage.
//
// internal/admission/quota charges each create in the same write. The controller counts objects
// when a quota is new or has changed, after deletions and decreases, and periodically. It corrects
// the usage by the difference.
//
// The package knows which objects a quota applies to. internal/builtin/usage measures their usage.
package quota

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/admission/quota"
	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Name is the name of the controller in kube-controller-manager.
const Name = "resourcequota-controller"

const (
	// resync is the interval at which all quotas are counted.
	resync = 5 * time.Minute
	// gather is the delay of a count after usage was released, so that one count covers several
	// releases. If counting is slow, the delay is share times the duration of a count.
	gather = 20 * time.Millisecond
	share  = 10
)

// again is the task that counts all quotas.
var again = controller.Task{Do: "resync"}

// Options of the controller. All are required.
type Options struct {
	Cache      *watchcache.Cache
	Evaluators *usage.Evaluators
	Turns      *quota.Turns // of the admission plugin
}

// A Controller has a task for each quota, by its key.
type Controller struct {
	Options
	objects *controller.Objects
	queue   *controller.Queue
	kind    *resource.Definition // ResourceQuota

	mu    sync.Mutex
	known map[string]map[string]*known // quotas by namespace and key
}

// known is the cached state of a quota.
type known struct {
	uid        string
	spec, hard []byte // as stored
	scopes     []corev1.ScopedResourceSelectorRequirement
	kinds      []counted     // of the objects that it limits
	took       time.Duration // duration of the last count
}

// New returns the constructor of the controller.
func New(options Options) func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{Options: options, objects: o, queue: q, kind: o.Lookup("", "resourcequotas"), known: map[string]map[string]*known{}}
	}
}

// Keys returns the prefix of all keys: quotas may limit any kind.
func (c *Controller) Keys() []string { return []string{""} }

// Load forgets all quotas; the load delivers them again.
func (c *Controller) Load() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
}

// Loaded does nothing: tasks do the counting.
func (c *Controller) Loaded() {}

// See queues a quota that has changed, or whose usage may have decreased.
func (c *Controller) See(e *controller.Event) {
	if strings.HasPrefix(e.Key, c.kind.StoragePrefix) {
		c.seeQuota(e)
	}
	if len(c.known) == 0 || e.Prev == nil { // only See adds or removes quotas
		return
	}
	quotas := c.known[controller.NamespaceOf(e.Key)]
	if quotas == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, k := range quotas {
		if k.gives(e) {
			c.queue.After(controller.Task{Key: key}, max(gather, share*k.took))
		}
	}
}

// seeQuota records a quota. A charge alone does not queue a count.
func (c *Controller) seeQuota(e *controller.Event) {
	namespace, task := controller.NamespaceOf(e.Key), controller.Task{Key: e.Key}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.known[namespace]
	now, err := e.Now()
	if e.Value == nil || err != nil {
		if delete(of, e.Key); len(of) == 0 {
			delete(c.known, namespace)
		}
		return
	}
	if of == nil {
		of = map[string]*known{}
		c.known[namespace] = of
	}
	spec, _ := object.Field(now.JSON, "spec")
	status, _ := object.Field(now.JSON, "status")
	hard, _ := object.Field(status, "hard")
	k := of[e.Key]
	if k != nil && k.uid == now.UID && bytes.Equal(k.spec, spec) && bytes.Equal(k.hard, hard) {
		return
	}
	of[e.Key] = &known{uid: strings.Clone(now.UID), spec: bytes.Clone(spec), hard: bytes.Clone(hard)}
	if k != nil {
		of[e.Key].scopes, of[e.Key].kinds = k.scopes, k.kinds // until the next count
	}
	c.queue.Add(task)
	c.queue.After(again, resync)
}

// gives reports whether the usage of an existing object, as counted by a quota, has changed.
func (of *known) gives(e *controller.Event) bool {
	for _, k := range of.kinds {
		if strings.HasPrefix(e.Key, k.prefix) && (e.Value == nil || of.differs(k, e)) {
			return true
		}
	}
	return false
}

// differs reports whether an update has changed the usage of an object, or whether the quota
// applies to it.
func (of *known) differs(k counted, e *controller.Event) bool {
	if _, alike := usage.Alike(k.Evaluator); alike {
		return false
	}
	now, known := of.usage(k, e.Value)
	was, before := of.usage(k, e.Prev)
	return !known || !before || !usage.Equal(now, was)
}

// atOnce returns a canceled context, for reads that must not block.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// usage returns the usage of a stored object. It is empty if the quota does not apply to the
// object.
func (of *known) usage(k counted, value []byte) (used corev1.ResourceList, known bool) {
	o, err := k.Read(atOnce, func(into any) error { return json.Unmarshal(value, into) })
	if err != nil {
		return nil, false
	}
	in, err := usage.Matches(o, of.scopes)
	if in {
		used = o.Usage()
	}
	return used, err == nil
}

// Do counts a quota, or queues all quotas.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if t != again {
		return c.count(ctx, t)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, quotas := range c.known {
		for key := range quotas {
			c.queue.Add(controller.Task{Key: key})
		}
	}
	if len(c.known) > 0 {
		c.queue.After(again, resync)
	}
	return nil
}
