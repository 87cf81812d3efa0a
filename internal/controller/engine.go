package controller

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// Options of an Engine. Objects, Follow and Controllers are required.
type Options struct {
	Objects Objects
	// Follow yields the events of a key prefix after a revision. It does not open another watch of
	// the Backend.
	Follow func(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error]
	// Controllers are the controllers to run.
	Controllers []Descriptor
	// Workers limits the concurrent tasks of one controller; 16 if 0. Each controller has its own
	// limit.
	Workers int
	// Metrics describe the queues; nil for none.
	Metrics *Metrics
}

// An Engine runs controllers over one store.
type Engine struct {
	objects Objects
	follow  func(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error]
	members []member
	kinds   string // key prefix of CustomResourceDefinitions
	seen    atomic.Int64

	mu    sync.Mutex // held while an event is delivered
	event Event      // the event being delivered

	services        string        // key prefix of APIServices
	servicesChanged chan struct{} // signals a change of APIServices
	followers       sync.WaitGroup
}

// CaughtUp reports whether the controllers have processed all events up to a revision and have no
// work left: no task is running, pending, or waiting for a retry. Tasks that wait for a later time,
// or for a kind to be served, do not count.
func (e *Engine) CaughtUp(revision int64) bool {
	if e.seen.Load() < revision {
		return false
	}
	for _, m := range e.members {
		if m.queue.busy() {
			return false
		}
	}
	return true
}

// A member is a controller of an Engine.
type member struct {
	Controller
	queue  *Queue
	all    bool     // it observes all keys
	others bool     // and those of other servers
	keys   []string // otherwise the observed prefixes
}

// New returns an Engine. It does nothing before Run.
func New(o Options) *Engine {
	o.Objects.complete()
	if o.Workers == 0 {
		o.Workers = 16
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics()
	}
	e := &Engine{
		objects: o.Objects,
		follow:  o.Follow,
		kinds:   o.Objects.DefinitionPrefix(),

		services: o.Objects.Prefix("apiregistration.k8s.io", "apiservices"), servicesChanged: make(chan struct{}, 1),
	}
	for _, d := range o.Controllers {
		q := newQueue(o.Workers, e.objects.Logger.With("controller", d.Name))
		o.Metrics.follow(d.Name, q)
		m := member{Controller: d.New(&e.objects, q), queue: q}
		q.do = m.Do
		for _, prefix := range m.Keys() {
			m.all = m.all || prefix == ""
			m.keys = append(m.keys, prefix)
		}
		m.others = m.all && d.Aggregated
		e.members = append(e.members, m)
	}
	return e
}

// Run runs the controllers until ctx ends, and then returns nil. Otherwise it returns the error of
// a failed store. Run can be called once.
func (e *Engine) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	for _, m := range e.members {
		m.queue.start(ctx)
		defer m.queue.wait()
	}
	defer cancel()
	const shortest, longest = 100 * time.Millisecond, 10 * time.Second
	for delay := shortest; ; delay = min(2*delay, longest) {
		began := e.objects.Now()
		err := e.feed(ctx)
		var damage *kv.CorruptError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, kv.ErrClosed), errors.As(err, &damage):
			return err
		}
		if e.objects.Now().Sub(began) > longest {
			delay = shortest
		}
		e.objects.Logger.Warn("the watch of the store was interrupted; stored objects will be read again", "error", err)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
}
