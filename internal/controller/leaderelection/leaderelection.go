// Package leaderelection elects the leaders of components with several instances, such as
// kube-scheduler. It needs the feature gate CoordinatedLeaderElection.
//
// An instance creates a LeaseCandidate with its versions. The controller compares the candidates for a
// Lease and makes one of them the holder. It asks a working holder to step down by preferredHolder. The
// strategy OldestEmulationVersion selects the oldest version, so that an upgrade does not change the
// behaviour of the component before its last instance. Other strategies belong to other controllers.
//
// An election has three steps: the controller sets pingTime of all candidates, candidates that run answer
// by a new renewTime, and the controller writes the Lease. The state is in these objects only.
//
// The package does not elect the server that runs this controller: internal/controller does.
package leaderelection

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
)

// Name is the name of the controller in kube-apiserver, and of the Lease that elects its server.
const Name = "leader-election-controller"

// Term returns the Term of the controller in kube-apiserver.
func Term() controller.Term {
	return controller.Term{Lease: Name, Duration: 15 * time.Second, Deadline: 10 * time.Second, Period: 2 * time.Second}
}

// manager is the field manager.
const manager = "kube-apiserver"

// interval is the time between two looks at a Lease with candidates: its holder may stop renewing it.
const interval = 5 * time.Second

// The tasks.
const (
	elect  = "elect"  // continue the election for the Lease with a key
	expire = "expire" // delete an expired candidate, by its key
)

// A Controller elects the holders of Leases, and deletes expired candidates.
type Controller struct {
	objects    *controller.Objects
	queue      *controller.Queue
	leases     *resource.Definition
	candidates *resource.Definition // nil if they are not served

	// contended has the number of candidates of each Lease, by its key. It drops the events of all other
	// Leases, such as those of nodes. Only See and Load use it.
	contended map[string]int
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{
		objects: o.ManagedBy(manager), queue: q,
		leases: o.Lookup("coordination.k8s.io", "leases"), candidates: o.Lookup("coordination.k8s.io", "leasecandidates"),
	}
}

// Keys returns the key prefixes of Leases and of candidates.
func (c *Controller) Keys() []string {
	if c.candidates == nil {
		return nil
	}
	return []string{c.leases.StoragePrefix, c.candidates.StoragePrefix}
}

// Load forgets the candidates: the next events have them.
func (c *Controller) Load() { c.contended = map[string]int{} }

// Loaded does nothing; a Loader needs it.
func (c *Controller) Loaded() {}

// See queues elections: for a changed candidate, and for a changed Lease with candidates.
func (c *Controller) See(e *controller.Event) {
	if strings.HasPrefix(e.Key, c.leases.StoragePrefix) {
		if c.contended[e.Key] > 0 {
			c.queue.Add(controller.Task{Do: elect, Key: e.Key})
		}
		return
	}
	value := e.Value
	if value == nil {
		value = e.Prev
	}
	if e.Value != nil {
		c.queue.Add(controller.Task{Do: expire, Key: e.Key})
	}
	one, err := readCandidate(e.Key, value, e.Revision)
	if err != nil {
		return // unreadable
	}
	lease := c.leaseOf(one)
	switch {
	case e.Value == nil:
		if c.contended[lease]--; c.contended[lease] <= 0 {
			delete(c.contended, lease)
		}
	case e.Prev == nil:
		c.contended[lease]++
	}
	if !one.unanswered() { // the election that has pinged it continues with its answer
		c.queue.Add(controller.Task{Do: elect, Key: lease})
	}
}

// leaseOf returns the key of the Lease of a candidate.
func (c *Controller) leaseOf(one *candidate) string {
	return c.leases.Key(controller.NamespaceOf(one.key), one.Spec.LeaseName)
}

// Do continues an election, or deletes an expired candidate.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if t.Do == expire {
		return c.expire(ctx, t)
	}
	e, err := c.read(ctx, t.Key)
	if err != nil || len(e.candidates) == 0 {
		return err
	}
	if err := c.step(ctx, t.Key, e); err != nil {
		return err
	}
	c.queue.After(t, interval)
	return nil
}

// step does one step of an election.
func (c *Controller) step(ctx context.Context, lease string, e *election) error {
	needed, invalid := e.needed()
	if !needed {
		c.report(lease, invalid)
		return nil
	}
	if due, wait := e.pings(); wait {
		return controller.Each(ctx, controller.Parallel, due, func(one *candidate) error { return c.ping(ctx, one, e.now) })
	}
	strategy, leader, invalid := e.result()
	if invalid != nil {
		c.report(lease, invalid)
		return nil
	}
	namespace, name := c.leases.Split(lease)
	return c.objects.InNamespace(ctx, namespace, func() error {
		return c.objects.Put(ctx, c.leases, namespace, name, func(old object.Tree) object.Tree {
			var t object.Tree
			switch {
			case old == nil:
				t = object.Tree{"apiVersion": c.leases.APIVersion(c.leases.StorageVersion().Name), "kind": c.leases.Kind,
					"metadata": object.Tree{"name": name, "namespace": namespace}}
				e.lease = coordinationv1.LeaseSpec{}
				start(&e.lease, e.now)
			case object.ResourceVersion(old) != e.version:
				return old // its event continues the election
			default:
				t = object.CloneTree(old)
			}
			assign(&e.lease, strategy, leader, e.now)
			t["spec"], _ = object.TreeOf(&e.lease) // a LeaseSpec always has one
			return t
		})
	})
}

// report logs the reason of an election without a result. A change of a candidate resolves it.
func (c *Controller) report(lease string, reason error) {
	if reason != nil {
		c.objects.Logger.Info("an election has no result", "lease", lease, "reason", reason)
	}
}

// read returns the election for the Lease with a key.
func (c *Controller) read(ctx context.Context, key string) (*election, error) {
	e := &election{}
	namespace, name := c.leases.Split(key)
	named := []byte(name)
	err := c.objects.Pages(ctx, c.candidates.NamespacePrefix(namespace), func(page kv.Page) {
		for i := range page.Records {
			r := &page.Records[i]
			if !bytes.Contains(r.Value, named) {
				continue
			}
			one, err := readCandidate(r.Key, r.Value, r.Revision)
			if err == nil && one.Spec.LeaseName == name && !one.expires().Before(c.objects.Now()) {
				e.candidates = append(e.candidates, one)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	found, err := c.objects.Read(ctx, key)
	if err != nil {
		return nil, err
	}
	if found != nil {
		var lease coordinationv1.Lease
		err = json.Unmarshal(found.JSON, &lease)
		e.lease, e.version = lease.Spec, strconv.FormatInt(found.Revision, 10)
	}
	e.now = c.objects.Now()
	return e, err
}

// ping asks a candidate to renew itself, unless it has changed meanwhile.
func (c *Controller) ping(ctx context.Context, one *candidate, now time.Time) error {
	return c.objects.Change(ctx, c.candidates, one.key, string(one.UID), "", func(t object.Tree) bool {
		if object.ResourceVersion(t) != one.resourceVersion {
			return false // its event continues the election
		}
		kind.Child(t, "spec")["pingTime"] = microTime(now)
		return true
	})
}

// expire deletes an expired candidate, or checks again at its expiry. A candidate without a renewal has
// the same time after its creation.
func (c *Controller) expire(ctx context.Context, t controller.Task) error {
	found, err := c.objects.Read(ctx, t.Key)
	if err != nil || found == nil {
		return err
	}
	one, err := readCandidate(t.Key, found.JSON, found.Revision)
	if err != nil && err != errName {
		return nil // unreadable
	}
	at := one.expires()
	if at.IsZero() {
		at = one.CreationTimestamp.Add(valid)
	}
	if left := at.Sub(c.objects.Now()); left >= 0 {
		c.queue.After(t, left+time.Millisecond)
		return nil
	}
	err = c.objects.Delete(ctx, c.candidates, t.Key, &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &one.UID, ResourceVersion: &one.resourceVersion},
	})
	if status.Is(err, metav1.StatusReasonConflict) {
		return nil // renewed; its event schedules the next check
	}
	return err
}

// errName is the error of a candidate whose Lease cannot exist. Any string is a valid leaseName.
var errName = errors.New("no Lease can have the name")

// readCandidate reads a stored LeaseCandidate. It returns the candidate with errName.
func readCandidate(key string, value []byte, revision int64) (*candidate, error) {
	var o coordinationv1beta1.LeaseCandidate
	err := json.Unmarshal(value, &o)
	one := &candidate{o.Name, o.UID, o.CreationTimestamp.Time, o.Spec, key, strconv.FormatInt(revision, 10)}
	if err == nil && len(validation.IsDNS1123Subdomain(one.Spec.LeaseName)) > 0 {
		err = errName
	}
	return one, err
}

func microTime(t time.Time) string { return t.UTC().Format(metav1.RFC3339Micro) }
