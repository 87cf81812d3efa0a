// Package serveridentity maintains a Lease for each API server in kube-system, by which clients
// discover the servers, and deletes the Leases of stopped servers.
//
// The server renews its Lease a few times in its duration, and no more often: an idle server has
// little to do. The package does not know addresses of servers for clients, nor the election of
// controllers.
package serveridentity

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
)

// Name is the name of the controller.
const Name = "kube-apiserver-identity-lease-controller"

const (
	namespace = metav1.NamespaceSystem
	// Label is the label of the Leases of servers, and Component its value.
	Label     = "apiserver.kubernetes.io/identity"
	Component = "kube-apiserver"
	// duration is the duration of a Lease, and renewal the interval of renewals.
	duration = time.Hour
	renewal  = 10 * time.Minute
)

// A Server is one of the servers that share a store.
type Server struct {
	Host     string         // the host name
	Instance string         // unique among the servers of a host
	Address  netip.AddrPort // the address for other servers; the zero AddrPort for none
}

// holder returns the holder identity of the server in its Lease.
func (s Server) holder() string { return s.ID() + "_" + s.Instance }

// ID returns the id of the server. This is the name of its Lease. All servers of a host have the same id.
func (s Server) ID() string {
	var text []byte
	for _, part := range []string{s.Host, Component} {
		text = append(binary.BigEndian.AppendUint16(text, uint16(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	return "apiserver-" + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// The tasks.
const (
	renew  = "renew"  // renew the Lease of this server
	expire = "expire" // delete an expired Lease of another server, by its key
)

// A Controller renews the Lease of a server, and deletes expired ones of others.
type Controller struct {
	objects *controller.Objects
	queue   *controller.Queue
	server  Server
	prefix  string // key prefix of the Leases in the namespace
}

// New returns the constructor of the controller for a server.
func New(s Server) func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		return &Controller{objects: o.ManagedBy(Component), queue: q, server: s, prefix: o.Lookup("coordination.k8s.io", "leases").NamespacePrefix(namespace)}
	}
}

// Keys returns the key prefixes of the Leases and of their namespace.
func (c *Controller) Keys() []string {
	return []string{c.prefix, c.objects.Prefix("", "namespaces") + namespace}
}

// Load does nothing; a Loader needs it.
func (c *Controller) Load() {}

// Loaded queues the first renewal.
func (c *Controller) Loaded() { c.queue.Add(controller.Task{Do: renew}) }

// See schedules the expiry of other Leases. It queues a renewal if the own Lease was deleted or the
// namespace was created.
func (c *Controller) See(e *controller.Event) {
	switch own := e.Key == c.prefix+c.server.ID(); {
	case own && e.Value != nil:
	case own, !strings.HasPrefix(e.Key, c.prefix):
		c.queue.Add(controller.Task{Do: renew})
	case bytes.Contains(e.Value, []byte(Label)):
		c.queue.Add(controller.Task{Do: expire, Key: e.Key})
	}
}

// Do renews a Lease, or deletes an expired one.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	if t.Do == expire {
		return c.expire(ctx, t)
	}
	c.queue.After(t, renewal)
	return c.objects.InNamespace(ctx, namespace, func() error { return c.renew(ctx) })
}

func (c *Controller) renew(ctx context.Context) error {
	d, key := c.objects.Lookup("coordination.k8s.io", "leases"), c.prefix+c.server.ID()
	found, err := c.objects.Read(ctx, key)
	if err != nil {
		return err
	}
	if found == nil {
		t := object.Tree{"metadata": object.Tree{"name": c.server.ID(), "namespace": namespace}}
		c.fill(t)
		return c.objects.Create(ctx, d, namespace, t)
	}
	return c.objects.Change(ctx, d, key, found.UID, "", c.fill)
}

// fill sets the fields of the Lease. It returns true, as a renewal always changes it.
func (c *Controller) fill(t object.Tree) bool {
	labels := kind.Child(kind.Child(t, "metadata"), "labels")
	labels[Label] = Component
	if len(validation.IsValidLabelValue(c.server.Host)) == 0 {
		labels[corev1.LabelHostname] = c.server.Host
	}
	if at := c.server.Address; at.IsValid() {
		kind.Child(kind.Child(t, "metadata"), "annotations")[corev1.AnnotationPeerAdvertiseAddress] = at.String()
	}
	spec := kind.Child(t, "spec")
	spec["holderIdentity"] = c.server.holder()
	spec["leaseDurationSeconds"] = int64(duration / time.Second)
	spec["renewTime"] = c.objects.Now().UTC().Format(metav1.RFC3339Micro)
	return true
}

// expire deletes an expired Lease, or checks again at its expiry.
func (c *Controller) expire(ctx context.Context, t controller.Task) error {
	found, err := c.objects.Read(ctx, t.Key)
	if err != nil || found == nil {
		return err
	}
	var lease coordinationv1.Lease
	if json.Unmarshal(found.JSON, &lease) != nil || lease.Labels[Label] != Component {
		return nil // not a Lease of a server
	}
	if s := lease.Spec; s.RenewTime != nil && s.LeaseDurationSeconds != nil {
		over := s.RenewTime.Add(time.Duration(*s.LeaseDurationSeconds) * time.Second)
		if left := over.Sub(c.objects.Now()); left >= 0 {
			c.queue.After(t, left+time.Millisecond)
			return nil
		}
	}
	revision := strconv.FormatInt(found.Revision, 10)
	err = c.objects.Delete(ctx, c.objects.Lookup("coordination.k8s.io", "leases"), t.Key, &metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &revision},
	})
	if status.Is(err, metav1.StatusReasonConflict) {
		return nil // renewed; its event schedules the next check
	}
	return err
}

// Retire deletes the Lease of a server that stops.
func Retire(ctx context.Context, o *controller.Objects, s Server) error {
	d := o.Lookup("coordination.k8s.io", "leases")
	found, err := o.Read(ctx, d.Key(namespace, s.ID()))
	if err != nil || found == nil {
		return err
	}
	var lease coordinationv1.Lease
	if json.Unmarshal(found.JSON, &lease) != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity != s.holder() {
		return nil // held by another server of the host
	}
	return o.Delete(ctx, d, d.Key(namespace, s.ID()), &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(found.UID)})
}
