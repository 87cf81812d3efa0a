package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/serveridentity"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Name is the name of the controller.
const Name = "peer-discovery-cache-sync"

// A Controller finds the peers of a Proxy. The key of its tasks is the id of a server.
type Controller struct {
	proxy  *Proxy
	queue  *controller.Queue
	leases string // key prefix of the Leases in kube-system
}

// Controller returns the constructor of the controller.
func (p *Proxy) Controller() func(*controller.Objects, *controller.Queue) controller.Controller {
	return func(o *controller.Objects, q *controller.Queue) controller.Controller {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queue = q
		return &Controller{p, q, o.Lookup("coordination.k8s.io", "leases").NamespacePrefix(metav1.NamespaceSystem)}
	}
}

// Keys returns the key prefixes of identity Leases and addresses.
func (c *Controller) Keys() []string { return []string{c.leases, resource.PeerLeasesPrefix} }

// Load forgets Leases and addresses. The discovery of servers remains.
func (c *Controller) Load() {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	for _, s := range c.proxy.servers {
		s.holder, s.address = "", ""
	}
}

// Loaded forgets servers without a Lease.
func (c *Controller) Loaded() {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	for id, s := range c.proxy.servers {
		c.changed(id, s)
	}
	c.proxy.publish()
}

// See follows the Leases and addresses of other servers. Most events are renewals.
func (c *Controller) See(e *controller.Event) {
	id, isAddress := strings.CutPrefix(e.Key, resource.PeerLeasesPrefix)
	if !isAddress {
		id = strings.TrimPrefix(e.Key, c.leases)
	}
	if id == c.proxy.options.Self || !isAddress && !bytes.Contains(e.Value, []byte(serveridentity.Label)) && !bytes.Contains(e.Prev, []byte(serveridentity.Label)) {
		return
	}
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	s := c.proxy.servers[id]
	if s == nil {
		s = &server{}
		c.proxy.servers[id] = s
	}
	before := *s
	if isAddress {
		s.address = addressOf(e.Value)
	} else {
		s.holder = holderOf(e.Value)
	}
	if *s == before && s.holder+s.address != "" || e.Loading {
		return
	}
	c.changed(id, s)
	c.proxy.publish()
}

// changed queues a request for the discovery of a server after a change of its identity or address,
// or forgets the server. A server without an address keeps its discovery: it may be restarting. The
// caller holds mu.
func (c *Controller) changed(id string, s *server) {
	switch {
	case s.holder == "" && s.address == "":
		delete(c.proxy.servers, id)
	case s.holder == "":
		s.served, s.of = nil, ""
	case s.address != "" && s.of != s.identity():
		c.queue.Add(controller.Task{Key: id})
	}
}

// holderOf returns the holder of an identity Lease; "" for none.
func holderOf(value []byte) string {
	var lease object.Tree
	if json.Unmarshal(value, &lease) != nil || kind.Text(lease, "metadata", "labels", serveridentity.Label) != serveridentity.Component {
		return ""
	}
	return kind.Text(lease, "spec", "holderIdentity")
}

// addressOf returns the address in the record of a server; "" for none.
func addressOf(value []byte) string {
	var record struct {
		Subsets []struct {
			Addresses []struct{ IP string }
			Ports     []struct{ Port int }
		}
	}
	if json.Unmarshal(value, &record) != nil {
		return ""
	}
	for _, s := range record.Subsets {
		if len(s.Addresses) > 0 && len(s.Ports) > 0 {
			return net.JoinHostPort(s.Addresses[0].IP, strconv.Itoa(s.Ports[0].Port))
		}
	}
	return ""
}

// Do requests the discovery of a server.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	p := c.proxy
	p.mu.Lock()
	s := p.servers[t.Key]
	if s == nil || s.holder == "" || s.address == "" {
		p.mu.Unlock()
		return nil // its events queue the task again
	}
	identity, address := s.identity(), s.address
	p.mu.Unlock()

	p.own.keepUp(ctx, p.options.Log)
	found, err := p.discover(ctx, t.Key, address)
	if err != nil {
		p.metrics.discovery.WithLabelValues(fetchDiscovery).Inc()
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s = p.servers[t.Key]; s == nil || s.identity() != identity {
		c.queue.Add(t) // a load in the meantime forgets the identity, and queues only servers that changed
		return nil
	}
	s.served, s.of = found, identity
	p.publish()
	oldest := found.asked
	for _, s := range p.servers {
		if s.served != nil && s.served.asked.Before(oldest) {
			oldest = s.served.asked
		}
	}
	if newest := p.own.settle(oldest); found.asked.Before(newest.Add(grace)) {
		c.queue.After(t, time.Until(newest.Add(grace)))
	}
	return nil
}
