// Package storageversion publishes the versions in which a server stores built-in kinds, as StorageVersions. It needs the
// feature gate StorageVersionAPI.
//
// Each server of a store has an entry in each StorageVersion, by its id. A migration of stored objects can then tell
// whether all servers agree. The server publishes at its start, before clients write: a Barrier rejects their writes
// until then. It waits for its Lease, because kube-controller-manager deletes entries of servers without one.
//
// The package does not delete entries of other servers. It knows no custom kinds: they have no StorageVersions.
package storageversion

import (
	"context"
	"errors"
	"time"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Name is the name of the controller, that of kube-apiserver's post-start hook.
const Name = "built-in-resources-storage-version-updater"

const (
	// manager is the field manager.
	manager = "kube-apiserver"
	// interval is the time after which the server restores entries that were changed.
	interval = 10 * time.Minute
)

// The resources whose writes need not wait.
const (
	storageVersions = "storageversions.internal.apiserver.k8s.io"
	leases          = "leases.coordination.k8s.io"
)

// errUnserved is the error of kube-apiserver's client if StorageVersions are not served.
var errUnserved = errors.New("the server could not find the requested resource (post " + storageVersions + ")")

// A Controller publishes the records of a Barrier. It has one task.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	barrier *Barrier
	server  string // id
	lease   string // key of the server's Lease
}

// New returns the constructor of the controller for a server.
func New(server string, b *Barrier) func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		lease := o.Lookup("coordination.k8s.io", "leases").Key(metav1.NamespaceSystem, server)
		return &Controller{objects: o.ManagedBy(manager), queue: q, barrier: b, server: server, lease: lease}
	}
}

// Keys returns the key of the server's Lease.
func (c *Controller) Keys() []string { return []string{c.lease} }

// See queues the publication once the Lease exists.
func (c *Controller) See(e *controller.Event) {
	if e.Key == c.lease && e.Prev == nil {
		c.queue.Add(controller.Task{})
	}
}

// Do publishes all records, and schedules the next publication.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	d := c.objects.Lookup(internalv1alpha1.GroupName, "storageversions")
	err := controller.Each(ctx, controller.Parallel, c.barrier.records, func(r *record) error {
		err := c.publish(ctx, d, r)
		if err == nil {
			r.done.Store(true)
		} else {
			r.failed.Store(&err)
		}
		return err
	})
	if err != nil {
		return err
	}
	c.barrier.Release()
	c.queue.After(t, interval)
	return nil
}

// publish writes the entry of this server to a StorageVersion.
func (c *Controller) publish(ctx context.Context, d *resource.Definition, r *record) error {
	if d == nil || !d.Served() {
		return errUnserved
	}
	key := d.Key("", r.name)
	for range 2 {
		found, err := c.objects.Read(ctx, key)
		if err != nil {
			return err
		}
		if found != nil {
			return c.objects.Change(ctx, d, key, found.UID, "status", func(t object.Tree) bool { return c.change(t, r) })
		}
		if err := c.objects.Create(ctx, d, "", object.Tree{"metadata": object.Tree{"name": r.name}, "spec": object.Tree{}}); err != nil {
			return err
		}
	}
	return errors.New("the StorageVersion was deleted meanwhile")
}

// change updates the status of a StorageVersion, and reports whether it has changed.
func (c *Controller) change(t object.Tree, r *record) bool {
	before, v := t["status"], kind.ValueOf[internalv1alpha1.StorageVersion](t)
	update(&v.Status, c.server, r, v.Generation, c.objects.Now())
	t["status"], _ = object.TreeOf(&v.Status) // a status always has one
	return !object.Equal(before, t["status"])
}

// update sets the entry of a server, the version that all servers use, and the condition about it.
func update(s *internalv1alpha1.StorageVersionStatus, server string, r *record, generation int64, now time.Time) {
	i := 0
	for i < len(s.StorageVersions) && s.StorageVersions[i].APIServerID != server {
		i++
	}
	if i == len(s.StorageVersions) {
		s.StorageVersions = append(s.StorageVersions, internalv1alpha1.ServerStorageVersion{APIServerID: server})
	}
	own := &s.StorageVersions[i]
	own.EncodingVersion, own.DecodableVersions, own.ServedVersions = r.encoding, r.decodable, r.served

	another := s.CommonEncodingVersion != nil && *s.CommonEncodingVersion != r.encoding
	status, reason, message := internalv1alpha1.ConditionTrue, "CommonEncodingVersionSet", "Common encoding version set"
	s.CommonEncodingVersion = &r.encoding
	for i := range s.StorageVersions {
		if s.StorageVersions[i].EncodingVersion != r.encoding {
			status, reason, message = internalv1alpha1.ConditionFalse, "CommonEncodingVersionUnset", "Common encoding version unset"
			s.CommonEncodingVersion = nil
		}
	}

	i = 0
	for i < len(s.Conditions) && s.Conditions[i].Type != internalv1alpha1.AllEncodingVersionsEqual {
		i++
	}
	if i == len(s.Conditions) {
		s.Conditions = append(s.Conditions, internalv1alpha1.StorageVersionCondition{Type: internalv1alpha1.AllEncodingVersionsEqual})
	}
	c := &s.Conditions[i]
	if c.Status != status || another && s.CommonEncodingVersion != nil {
		c.LastTransitionTime.Time = now
	}
	c.Status, c.Reason, c.Message, c.ObservedGeneration = status, reason, message, generation
}
