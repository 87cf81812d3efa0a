package legacytoken

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry/apply"
)

// TrackingName is the name of the controller that records the start of tracking.
const TrackingName = "legacy-token-tracking-controller"

// TrackingConfigMap is the name of its ConfigMap in kube-system.
const TrackingConfigMap = "kube-apiserver-legacy-service-account-token-tracking"

const (
	sinceKey = "since"
	// creationPause is the least time between two creates of the ConfigMap. A server that does not
	// track uses may delete it.
	creationPause = 30 * time.Minute
)

// A Tracker maintains the ConfigMap. It has one task.
type Tracker struct {
	objects *controller.Objects
	queue   *controller.Queue
	key     string
	made    time.Time // time of the last create; only the task uses it
}

// NewTracker returns the controller.
func NewTracker(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Tracker{objects: o.ManagedBy(apply.Server), queue: q, key: o.Prefix("", "configmaps") + metav1.NamespaceSystem + "/" + TrackingConfigMap}
}

// Keys returns the key of the ConfigMap.
func (c *Tracker) Keys() []string { return []string{c.key} }

// Load does nothing; a Loader needs it.
func (c *Tracker) Load() {}

// Loaded queues the task: a missing ConfigMap has no event.
func (c *Tracker) Loaded() { c.queue.Add(controller.Task{}) }

// See queues the task after the ConfigMap was changed or deleted.
func (c *Tracker) See(e *controller.Event) {
	if e.Key == c.key && !e.Loading {
		c.queue.Add(controller.Task{})
	}
}

// Do creates or repairs the ConfigMap.
func (c *Tracker) Do(ctx context.Context, t controller.Task) error {
	found, err := c.objects.Read(ctx, c.key)
	if err != nil {
		return err
	}
	now := c.objects.Now()
	today := now.UTC().Format(serviceaccount.DateFormat)
	d := c.objects.Lookup("", "configmaps")
	if found != nil {
		return c.objects.Change(ctx, d, c.key, found.UID, "", func(t object.Tree) bool {
			if _, ok := serviceaccount.Day(kind.Text(t, "data", sinceKey)); ok {
				return false
			}
			kind.Child(t, "data")[sinceKey] = today
			return true
		})
	}
	if wait := c.made.Add(creationPause).Sub(now); !c.made.IsZero() && wait > 0 {
		c.queue.After(t, wait)
		return nil
	}
	err = c.objects.Create(ctx, d, metav1.NamespaceSystem, object.Tree{
		"metadata": object.Tree{"name": TrackingConfigMap, "namespace": metav1.NamespaceSystem},
		"data":     object.Tree{sinceKey: today},
	})
	if err == nil {
		c.made = now
	}
	return err
}

// trackedSince returns the day in the ConfigMap, and whether it has one.
func trackedSince(configMap []byte) (time.Time, bool) {
	var m struct{ Data map[string]string }
	if err := json.Unmarshal(configMap, &m); err != nil {
		return time.Time{}, false
	}
	return serviceaccount.Day(m.Data[sinceKey])
}
