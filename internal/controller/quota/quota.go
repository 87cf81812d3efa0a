// Package quota keeps the status of ResourceQuotas: what they limit, and how much of it is used.
//
// What is created is charged to quotas in its own write, by internal/admission/quota. The controller
// counts what is there when a quota is new or has changed, when something was deleted or uses less, and
// once in a while, and corrects what is charged by the difference.
//
// The package knows which objects a quota is about. How much they use is measured by internal/builtin/usage.
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

// Name is what kube-controller-manager calls the controller.
const Name = "resourcequota-controller"

const (
	// resync is how often everything is counted, whatever has happened.
	resync = 5 * time.Minute
	// gather is how long more is awaited after something was given back. Where counting takes long,
	// it is share times as long as that.
	gather = 20 * time.Millisecond
	share  = 10
)

// again is the task of counting everything.
var again = controller.Task{Do: "resync"}

// Options of the controller. All are needed.
type Options struct {
	Cache      *watchcache.Cache
	Evaluators *usage.Evaluators
	Turns      *quota.Turns // of those who charge something
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

// known is what is remembered of a quota.
type known struct {
	uid        string
	spec, hard []byte // as they are stored
	scopes     []corev1.ScopedResourceSelectorRequirement
	kinds      []counted     // of the objects that it is about
	took       time.Duration // to count them
}

// New makes the controller.
func New(options Options) func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{Options: options, objects: o, queue: q, kind: o.Lookup("", "resourcequotas"), known: map[string]map[string]*known{}}
	}
}

// Keys returns that of everything, for quotas may be about any kind.
func (c *Controller) Keys() []string { return []string{""} }

// Load forgets all quotas, which are shown again.
func (c *Controller) Load() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.known)
}

// Loaded does nothing: what is counted is counted by tasks.
func (c *Controller) Loaded() {}

// See has a quota counted that has changed, or of which something is given back.
func (c *Controller) See(e *controller.Event) {
	if strings.HasPrefix(e.Key, c.kind.StoragePrefix) {
		c.seeQuota(e)
	}
	if len(c.known) == 0 || e.Prev == nil { // only See changes which are known
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

// seeQuota remembers a quota. What is only charged to it is no news.
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
		of[e.Key].scopes, of[e.Key].kinds = k.scopes, k.kinds // until they are looked for
	}
	c.queue.Add(task)
	c.queue.After(again, resync)
}

// gives reports whether an object that was there uses something else than before of what a quota is
// about.
func (of *known) gives(e *controller.Event) bool {
	for _, k := range of.kinds {
		if strings.HasPrefix(e.Key, k.prefix) && (e.Value == nil || of.differs(k, e)) {
			return true
		}
	}
	return false
}

// differs reports whether an update has changed what an object uses, or whether the quota is about it.
func (of *known) differs(k counted, e *controller.Event) bool {
	if _, alike := usage.Alike(k.Evaluator); alike {
		return false
	}
	now, known := of.usage(k, e.Value)
	was, before := of.usage(k, e.Prev)
	return !known || !before || !usage.Equal(now, was)
}

// atOnce is for reading what is at hand.
var atOnce = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// usage returns what a stored object uses, which is nothing if the quota is not about it.
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

// Do counts what a quota is about, or has all quotas counted.
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
