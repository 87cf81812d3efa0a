package scarce

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/anykind/anykind/test/process"
)

const (
	services  = "/api/v1/namespaces/default/services"
	addresses = "/apis/networking.k8s.io/v1/ipaddresses"
	pods      = "/api/v1/namespaces/default/pods"
	budgets   = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
)

// Flags limit addresses and ports: so few that clients conflict, and that a leaked one shows. The
// repair controllers do not run before the check.
var Flags = []string{
	"--service-cluster-ip-range", "10.0.0.0/25", "--service-node-port-range", "30000-30063",
	"--controllers", "*,-service-ip-repair-controller",
}

// A Client sends one request after the other, for the same resources as other clients.
type Client struct {
	number int
	random *rand.Rand
	ledger *Ledger
	made   int
	mine   []string // Services that it may delete
}

// NewClient returns a client whose requests follow from a seed.
func NewClient(number int, seed uint64, l *Ledger) *Client {
	return &Client{number: number, random: rand.New(rand.NewPCG(seed, uint64(number)+1)), ledger: l}
}

// Step sends one request. It fails without a response, and with a violation.
func (c *Client) Step(ctx context.Context, api process.API) error {
	err := c.step(ctx, api)
	if err != nil {
		return fmt.Errorf("client %d: %w", c.number, err)
	}
	return nil
}

func (c *Client) step(ctx context.Context, api process.API) error {
	switch c.random.IntN(10) {
	case 0, 1, 2:
		return c.createService(ctx, api)
	case 3, 4:
		return c.deleteService(ctx, api)
	case 5:
		return c.createPod(ctx, api)
	case 6:
		return c.createGuarded(ctx, api)
	case 7:
		return c.bind(ctx, api)
	case 8:
		return c.evict(ctx, api)
	default:
		return c.deletePod(ctx, api)
	}
}

type object = map[string]any

// full is in the error of an exhausted range.
const full = "is full"

func (c *Client) name(of string) string {
	c.made++
	return fmt.Sprintf("%s-%d-%d", of, c.number, c.made)
}

func (c *Client) createService(ctx context.Context, api process.API) error {
	spec := object{"ports": []any{object{"port": 80}}}
	switch c.random.IntN(4) {
	case 0:
		spec["clusterIP"] = fmt.Sprintf("10.0.0.%d", 2+c.random.IntN(8))
	case 1:
		spec["type"] = "NodePort"
	case 2:
		spec["type"] = "NodePort"
		spec["ports"] = []any{object{"port": 80, "nodePort": 30000 + c.random.IntN(8)}}
	}
	name := c.name("s")
	c.ledger.ask(name, &life{kind: ofService})
	var made Service
	body := object{"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name}, "spec": spec}
	err := api.Do(ctx, http.MethodPost, services, body, &made)
	if refused(err, "already allocated", full) {
		c.ledger.refuse(name)
		return nil
	}
	if err == nil {
		c.mine = append(c.mine, name)
		c.ledger.have(name, made.held())
	}
	return err
}

func (c *Client) deleteService(ctx context.Context, api process.API) error {
	if len(c.mine) == 0 {
		return c.createService(ctx, api)
	}
	i := c.random.IntN(len(c.mine))
	name := c.mine[i]
	c.mine = slices.Delete(c.mine, i, i+1)
	c.ledger.asks(name, func(l *life) { l.remove = asked })
	err := api.Do(ctx, http.MethodDelete, services+"/"+name, nil, nil)
	if err == nil {
		c.ledger.asks(name, func(l *life) { l.remove = done })
	}
	return err
}

func newPod(name string) object {
	return object{
		"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name},
		"spec": object{"terminationGracePeriodSeconds": 30, "containers": []any{object{"name": "c", "image": "i"}}},
	}
}

func (c *Client) createPod(ctx context.Context, api process.API) error {
	name := c.name("p")
	c.ledger.ask(name, &life{kind: ofPod, tried: map[string]bool{}})
	err := api.Do(ctx, http.MethodPost, pods, newPod(name), nil)
	if err == nil {
		c.ledger.have(name, "")
	}
	return err
}

// createGuarded creates a running pod that is only evicted, never deleted.
func (c *Client) createGuarded(ctx context.Context, api process.API) error {
	name := c.name("g")
	c.ledger.ask(name, &life{kind: ofGuarded, node: "there"})
	pod := newPod(name)
	pod["metadata"].(object)["labels"] = object{"guarded": "yes"}
	pod["spec"].(object)["nodeName"] = "there"
	if err := api.Do(ctx, http.MethodPost, pods, pod, nil); err != nil {
		return err
	}
	c.ledger.have(name, "")
	status := object{"status": object{"phase": "Running", "conditions": []any{object{"type": "Ready", "status": "True"}}}}
	err := api.Do(ctx, http.MethodPatch, pods+"/"+name+"/status", status, nil)
	if err == nil {
		c.ledger.asks(name, func(l *life) { l.ready = true })
	}
	return err
}

// bind binds a pod to a node that no other attempt names.
func (c *Client) bind(ctx context.Context, api process.API) error {
	name := c.ledger.some(c.random, func(l *life) bool { return l.kind == ofPod && l.have })
	if name == "" {
		return c.createPod(ctx, api)
	}
	node := c.name("n")
	c.ledger.asks(name, func(l *life) { l.tried[node] = true })
	body := object{"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": name}, "target": object{"kind": "Node", "name": node}}
	err := api.Do(ctx, http.MethodPost, pods+"/"+name+"/binding", body, nil)
	switch {
	case status(err) == http.StatusConflict, status(err) == http.StatusNotFound:
		c.ledger.asks(name, func(l *life) { delete(l.tried, node) })
		return nil
	case err == nil:
		c.ledger.bound(name, node)
	}
	return err
}

func (c *Client) evict(ctx context.Context, api process.API) error {
	name := c.ledger.some(c.random, func(l *life) bool { return l.kind == ofGuarded && l.ready && l.remove != done })
	if name == "" {
		return c.createGuarded(ctx, api)
	}
	c.ledger.evicts(name)
	body := object{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": object{"name": name}}
	err := api.Do(ctx, http.MethodPost, pods+"/"+name+"/eviction", body, nil)
	switch {
	case status(err) == http.StatusTooManyRequests:
		c.ledger.notEvicted()
		return nil
	case status(err) == http.StatusConflict: // other clients were faster, perhaps at the same budget
		return nil
	case err == nil:
		c.ledger.asks(name, func(l *life) { l.remove = done })
	}
	return err
}

// deletePod deletes a pod gracefully, or, if it is terminating, at once.
func (c *Client) deletePod(ctx context.Context, api process.API) error {
	force := c.random.IntN(2) == 0
	name := c.ledger.some(c.random, func(l *life) bool { return l.kind == ofPod && l.have && (!force || l.remove == done) })
	if name == "" {
		return c.createPod(ctx, api)
	}
	var body any
	if force {
		body = object{"gracePeriodSeconds": 0}
	}
	c.ledger.asks(name, func(l *life) { l.wants(force, asked) })
	err := api.Do(ctx, http.MethodDelete, pods+"/"+name, body, nil)
	if status(err) == http.StatusNotFound || status(err) == http.StatusConflict {
		return nil
	}
	if err == nil {
		c.ledger.asks(name, func(l *life) { l.wants(force, done) })
	}
	return err
}

// status returns the status code of an error, 0 for any other.
func status(err error) int {
	if r, ok := errors.AsType[*process.Refused](err); ok {
		return r.Code
	}
	return 0
}

// refused reports whether an error has one of the reasons.
func refused(err error, reasons ...string) bool {
	return status(err) != 0 && slices.ContainsFunc(reasons, func(reason string) bool { return strings.Contains(err.Error(), reason) })
}
