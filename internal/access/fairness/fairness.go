// Package fairness limits the requests in flight by FlowSchemas and PriorityLevelConfigurations.
//
// A request belongs to the first FlowSchema that matches it, and is served with the seats of its
// priority level. Levels have shares of the server's seats, and lend them for some seconds. A level
// with too many requests lets them wait in queues or rejects them. Within a level, flows get equal
// shares: the requests of one user or namespace delay those of others little.
//
// The objects come from the cache. A request is dispatched by all writes that its server has seen. The package does not know the initial objects.
package fairness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Options of a Dispatcher.
type Options struct {
	// Seats is the number of seats of the server.
	Seats int
	// Schemas and Levels are the mandatory objects, for the time in which they are not stored.
	Schemas map[string]flowcontrolv1.FlowSchemaSpec
	Levels  map[string]flowcontrolv1.PriorityLevelConfigurationSpec
	// Stored returns the number of objects of a resource and their size in bytes, as far as they
	// are known. The number is -1 otherwise.
	Stored func(group, resource string) (objects, bytes int64)
	// Timeout is the longest time of a request. It may wait for a quarter of it.
	Timeout time.Duration
	// Gates are the feature gates.
	Gates *gate.Set
	Log   *slog.Logger
}

// A Dispatcher decides when a request is served.
type Dispatcher struct {
	options Options
	stored  *stored.Follower
	watches watches

	config atomic.Pointer[config]

	unread  atomic.Bool // the objects could not be read
	retries atomic.Bool // a request is trying again

	objects Objects // as stored; for apply

	mu   sync.Mutex // for changes of the config
	of   Objects    // from which the config was derived
	fair float64    // multiple of its demand that each level got last
}

// Objects are the objects of priority and fairness, by any key.
type Objects struct {
	Levels  map[string]*flowcontrolv1.PriorityLevelConfiguration
	Schemas map[string]*flowcontrolv1.FlowSchema
}

// A config is derived from the objects. It is immutable, but for the limits of levels.
type config struct {
	classes  []*class // in the order of their precedence
	catchAll *class
	shares   []*share // by the name of their level
	total    int      // seats of all levels
}

// A class has the requests of a FlowSchema.
type class struct {
	name   string
	spec   *flowcontrolv1.FlowSchemaSpec
	share  *share
	flow   *flow
	header [2][]string // UIDs of the level and the schema
}

// New returns a Dispatcher with the mandatory objects.
func New(o Options) *Dispatcher {
	d := &Dispatcher{options: o, watches: watches{counts: map[watched]int{}}, objects: Objects{
		Levels:  map[string]*flowcontrolv1.PriorityLevelConfiguration{},
		Schemas: map[string]*flowcontrolv1.FlowSchema{},
	}}
	d.config.Store(&config{})
	d.Configure(Objects{})
	return d
}

// The followed kinds.
const (
	levelKind = iota
	schemaKind
)

// Read sets the cache, and the set with the kinds to follow. It is called once, before the first
// request.
func (d *Dispatcher) Read(cache *watchcache.Cache, set *resource.Set) {
	d.stored = stored.Follow(cache, set, []schema.GroupResource{
		levelKind:  flowcontrolv1.Resource("prioritylevelconfigurations"),
		schemaKind: flowcontrolv1.Resource("flowschemas"),
	}, d.apply)
}

func (d *Dispatcher) apply(kind int, c stored.Changes) {
	if kind == levelKind {
		applyTo(d, d.objects.Levels, c)
	} else {
		applyTo(d, d.objects.Schemas, c)
	}
	d.Configure(Objects{Levels: maps.Clone(d.objects.Levels), Schemas: maps.Clone(d.objects.Schemas)})
}

func applyTo[T any](d *Dispatcher, objects map[string]*T, c stored.Changes) {
	if c.Anew() {
		clear(objects)
	}
	for o, exists := range c.All() {
		if !exists {
			delete(objects, o.Key)
			continue
		}
		v := new(T)
		data, err := o.JSON()
		if err == nil {
			err = json.Unmarshal(data, v)
		}
		if err != nil {
			d.options.Log.Warn("an object of priority and fairness could not be read", "key", o.Key, "error", err)
			continue
		}
		objects[o.Key] = v
	}
}

// Configure replaces the objects. They must not change afterwards.
func (d *Dispatcher) Configure(o Objects) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of = o
	d.configure()
}

// configure derives the config from the objects.
func (d *Dispatcher) configure() {
	old := map[string]*share{}
	for _, s := range d.config.Load().shares {
		old[s.level.name] = s
	}
	c := &config{}
	kept := map[string]*share{} // by name, of the new config
	uids := map[string]string{}
	keep := func(name string, spec *flowcontrolv1.PriorityLevelConfigurationSpec) {
		s := &share{}
		if before := old[name]; before != nil {
			*s = *before
		} else {
			s.level = newLevel(name, spec.Type == flowcontrolv1.PriorityLevelEnablementExempt, d.options.Gates)
		}
		s.spec, s.leaving = spec, false
		kept[name] = s
		c.shares = append(c.shares, s)
	}
	for _, l := range d.of.Levels {
		if err := usable(l.Name, &l.Spec); err != nil {
			d.options.Log.Warn("a PriorityLevelConfiguration is ignored", "name", l.Name, "error", err)
			continue
		}
		uids[l.Name] = string(l.UID)
		keep(l.Name, &l.Spec)
	}
	for name, spec := range d.options.Levels {
		if kept[name] == nil {
			keep(name, &spec)
		}
	}
	desired := len(c.shares)
	for name, s := range old {
		// A level that was deleted keeps its share until its last request has ended.
		if kept[name] == nil && !s.level.idle() {
			keep(name, s.spec)
		}
	}
	for _, s := range c.shares[desired:] {
		s.leaving = true
		delete(kept, s.level.name) // no more requests
	}
	slices.SortFunc(c.shares, func(a, b *share) int { return strings.Compare(a.level.name, b.level.name) })
	c.divide(d.options.Seats)

	add := func(name, uid string, spec *flowcontrolv1.FlowSchemaSpec) {
		s := kept[spec.PriorityLevelConfiguration.Name]
		if s == nil {
			return
		}
		one := &class{
			name: name, spec: spec, share: s, flow: s.level.flow(name),
			header: [2][]string{{uids[s.level.name]}, {uid}},
		}
		if name == flowcontrolv1.FlowSchemaNameCatchAll {
			c.catchAll = one
		}
		c.classes = append(c.classes, one)
	}
	stored := map[string]bool{}
	for _, s := range d.of.Schemas {
		stored[s.Name] = true
		add(s.Name, string(s.UID), &s.Spec)
	}
	for name, spec := range d.options.Schemas {
		if !stored[name] {
			add(name, "", &spec)
		}
	}
	for _, s := range c.shares {
		s.level.forget(c.classes)
	}
	slices.SortFunc(c.classes, func(a, b *class) int {
		return cmp.Or(cmp.Compare(a.spec.MatchingPrecedence, b.spec.MatchingPrecedence), strings.Compare(a.name, b.name))
	})
	d.lend(c)
	d.config.Store(c)
}

// usable returns an error for a level that the validation of an earlier version may have accepted.
func usable(name string, l *flowcontrolv1.PriorityLevelConfigurationSpec) error {
	exempt := l.Type == flowcontrolv1.PriorityLevelEnablementExempt
	switch {
	case exempt != (l.Exempt != nil), (l.Type == flowcontrolv1.PriorityLevelEnablementLimited) != (l.Limited != nil):
		return errors.New("spec.type does not say whether spec.exempt or spec.limited is set")
	case exempt != (name == flowcontrolv1.PriorityLevelConfigurationNameExempt):
		return errors.New("only the level exempt is exempt")
	case exempt:
		return nil
	}
	r := &l.Limited.LimitResponse
	switch q := r.Queuing; {
	case (r.Type == flowcontrolv1.LimitResponseTypeReject) != (q == nil):
		return errors.New("spec.limited.limitResponse.type does not say whether queuing is set")
	case q != nil && (q.Queues < 1 || q.HandSize < 1 || q.HandSize > min(q.Queues, mostCards)):
		return errors.New("spec.limited.limitResponse.queuing.handSize does not fit the number of queues")
	}
	return nil
}

// divide gives each level its share of the seats. A level is given at least the seats that its
// fraction amounts to, so that the sum may exceed them a little.
func (c *config) divide(seats int) {
	var sum float64
	for _, s := range c.shares {
		sum += float64(s.shares())
	}
	for _, s := range c.shares {
		lends, borrows := int32(0), (*int32)(nil)
		var q queuing
		if l := s.spec.Limited; l != nil {
			lends, borrows = ptr.Deref(l.LendablePercent, 0), l.BorrowingLimitPercent
			if r := l.LimitResponse.Queuing; r != nil {
				q = queuing{queues: int(r.Queues), hand: int(r.HandSize), length: int(r.QueueLengthLimit)}
			}
		} else {
			lends = ptr.Deref(s.spec.Exempt.LendablePercent, 0)
		}
		s.queuing = q
		s.nominal = int(math.Ceil(float64(seats) * float64(s.shares()) / max(sum, 1)))
		part := func(percent int32) int { return int(math.Round(float64(s.nominal) * float64(percent) / 100)) }
		s.lowest, s.highest = s.nominal-part(lends), s.nominal+seats
		if borrows != nil {
			s.highest = s.nominal + part(*borrows)
		}
		s.most = 0
		if q.hand > 0 {
			// A request must not need more seats than its flow gets.
			s.most = max(1, min(int(math.Ceil(float64(s.nominal)*mostOfLevel)), s.nominal/q.hand))
		}
		c.total += s.nominal
	}
}

// mostOfLevel is the largest part of a level's seats for one request.
const mostOfLevel = 0.15

// lend adapts the limits of all levels.
func (d *Dispatcher) lend(c *config) {
	d.fair = lend(c.shares, c.total)
	for _, s := range c.shares {
		of := s.limit
		if of <= 0 {
			of = max(1, int(math.Round(float64(d.options.Seats)/10)))
		}
		var left func()
		if s.leaving {
			left = d.reconfigure
		}
		s.level.configure(s.queuing, s.limit, of, left)
	}
}

// period is the time between two adaptations of limits.
const period = 10 * time.Second

// Run adapts the limits of levels to their demand until ctx ends.
func (d *Dispatcher) Run(ctx context.Context) {
	ticks := time.NewTicker(period)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
			d.adapt()
		}
	}
}

func (d *Dispatcher) adapt() {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.config.Load()
	if slices.ContainsFunc(c.shares, func(s *share) bool { return s.leaving && s.level.idle() }) {
		d.configure() // its last request ended when it was about to be kept
		return
	}
	d.lend(c)
}

// reconfigure derives the config again, without the deleted levels that are idle.
func (d *Dispatcher) reconfigure() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.configure()
}

// Names of the headers that name the level and the FlowSchema of a request, in canonical form.
const (
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
)

// Admit waits until a request may be served, and names its level in the header of the answer. The
// caller must call Release of the Turn when the request no longer needs its seats, and End at last. If
// the request is rejected, Admit returns the seconds after which the client may try again.
func (d *Dispatcher) Admit(h http.Header, r *http.Request, q *request.Request, arrived time.Time, t *Turn) (retryAfter int64) {
	ctx := r.Context()
	d.keepUp(ctx)
	c := d.classify(q)
	h[levelHeader], h[schemaHeader] = c.header[0], c.header[1]
	t.request, t.flow = q, c.flow
	t.work = d.work(q, r, c.share.most)
	var hash uint64
	if c.share.queuing.queues > 1 {
		t.distinguisher = c.distinguish(q)
		hash = hashOf(c.name, t.distinguisher)
	}
	reason := c.share.level.enter(ctx, t, hash, arrived.Add(d.patience(ctx, arrived)))
	if t.dispatched != nil {
		q.Wait(time.Since(t.arrived))
	}
	if reason != "" {
		return t.retryAfter
	}
	if q.Info.IsWatch() {
		t.end = d.watches.begin(&q.Info, r)
	}
	return 0
}

// keepUp applies the changes of the objects. If the store does not respond, the present ones are
// enough: one request at a time tries again, and the others do not wait.
func (d *Dispatcher) keepUp(ctx context.Context) {
	if d.stored == nil {
		return
	}
	failed := d.unread.Load()
	if failed && !d.retries.CompareAndSwap(false, true) {
		return
	}
	err := d.stored.KeepUpSoon(ctx)
	if failed {
		d.retries.Store(false)
	}
	if err != nil && ctx.Err() != nil {
		return
	}
	if d.unread.Swap(err != nil) != (err != nil) && err != nil {
		d.options.Log.Warn("FlowSchemas and PriorityLevelConfigurations cannot be read; the present ones count", "error", err)
	}
}

// classify returns the class of a request. The FlowSchema catch-all is also for users that are neither
// authenticated nor anonymous.
func (d *Dispatcher) classify(q *request.Request) *class {
	config := d.config.Load()
	for _, c := range config.classes {
		if matches(c.spec, q) {
			return c
		}
	}
	return config.catchAll
}

// distinguish returns the name of the flow of a request in its class.
func (c *class) distinguish(q *request.Request) string {
	switch by := c.spec.DistinguisherMethod; {
	case by == nil:
		return ""
	case by.Type == flowcontrolv1.FlowDistinguisherMethodByUserType:
		return q.User.Name
	default:
		return q.Info.Namespace
	}
}

// longestWait limits the wait of a request.
const longestWait = time.Minute

// patience returns the time that a request may wait after its arrival: a quarter of the time in which
// it must be answered.
func (d *Dispatcher) patience(ctx context.Context, arrived time.Time) time.Duration {
	timeout := d.options.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = deadline.Sub(arrived)
	}
	return min(timeout/4, longestWait)
}
