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
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// The resources whose writes never wait.
var (
	storageVersions = schema.GroupResource{Group: internalv1alpha1.GroupName, Resource: "storageversions"}
	leases          = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
)

// errUnserved is the error of kube-apiserver's client if StorageVersions are not served.
var errUnserved = errors.New("the server could not find the requested resource (post storageversions.internal.apiserver.k8s.io)")

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
		lease := o.Lookup(leases.Group, leases.Resource).Key(metav1.NamespaceSystem, server)
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
	d := c.objects.Lookup(storageVersions.Group, storageVersions.Resource)
	err := controller.Each(ctx, controller.Parallel, c.barrier.records, func(r *record) error {
		err := c.publish(ctx, d, r)
		c.barrier.report(r, err)
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
	if d == nil {
		return errUnserved
	}
	key := d.Key("", r.name())
	found, err := c.objects.Read(ctx, key)
	if err == nil && found == nil {
		if err = c.objects.Create(ctx, d, "", object.Tree{"metadata": object.Tree{"name": r.name()}, "spec": object.Tree{}}); err == nil {
			found, err = c.objects.Read(ctx, key)
		}
	}
	if err != nil {
		return err
	}
	if found == nil {
		return errors.New("the StorageVersion " + r.name() + " was deleted meanwhile")
	}
	return c.objects.Change(ctx, d, key, found.UID, "status", func(t object.Tree) bool {
		before := object.Clone(t["status"])
		update(t, c.server, r, c.objects.Now())
		return !object.Equal(before, t["status"])
	})
}

// update sets the entry of a server in a StorageVersion.
func update(t object.Tree, server string, r *record, now time.Time) {
	entry := object.Tree{"apiServerID": server, "encodingVersion": r.encoding, "decodableVersions": texts(r.decodable)}
	if len(r.served) > 0 {
		entry["servedVersions"] = texts(r.served)
	}
	s := kind.Child(t, "status")
	entries, _ := s["storageVersions"].([]any)
	at := -1
	for i, other := range entries {
		if o, ok := other.(object.Tree); ok && o["apiServerID"] == server {
			at = i
		}
	}
	if at < 0 {
		entries = append(entries, entry)
	} else {
		entries[at] = entry
	}
	s["storageVersions"] = entries
	agree(t, s, now)
}

// agree sets the version that all servers use, and the condition about it.
func agree(t, s object.Tree, now time.Time) {
	entries, _ := s["storageVersions"].([]any)
	was, _ := s["commonEncodingVersion"].(string)
	common, same := "", true
	for i, e := range entries {
		o, _ := e.(object.Tree)
		version, _ := o["encodingVersion"].(string)
		same = same && (i == 0 || version == common)
		common = version
	}
	condition := object.Tree{
		"type": string(internalv1alpha1.AllEncodingVersionsEqual), "status": string(internalv1alpha1.ConditionFalse),
		"reason": "CommonEncodingVersionUnset", "message": "Common encoding version unset",
	}
	delete(s, "commonEncodingVersion")
	if same {
		s["commonEncodingVersion"] = common
		condition["status"], condition["reason"], condition["message"] = string(internalv1alpha1.ConditionTrue), "CommonEncodingVersionSet", "Common encoding version set"
	}
	if generation, ok := object.Metadata(t)["generation"].(int64); ok && generation > 0 {
		condition["observedGeneration"] = generation
	}
	condition["lastTransitionTime"] = object.Timestamp(now)
	conditions, _ := s["conditions"].([]any)
	for i, c := range conditions {
		o, _ := c.(object.Tree)
		if o["type"] != condition["type"] {
			continue
		}
		if o["status"] == condition["status"] && (was == "" || !same || was == common) {
			condition["lastTransitionTime"] = o["lastTransitionTime"]
		}
		conditions[i] = condition
		return
	}
	s["conditions"] = append(conditions, condition)
}

// texts returns strings as a list of a tree.
func texts(all []string) (list []any) {
	for _, s := range all {
		list = append(list, s)
	}
	return list
}
