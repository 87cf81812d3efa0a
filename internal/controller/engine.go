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

// Options of an Engine. Objects, Follow and Controllers are needed.
type Options struct {
	Objects Objects
	// Follow yields what happens to keys with a prefix after a revision, like a watch
	// of the Backend, without being one more.
	Follow func(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error]
	// Controllers are those that run.
	Controllers []Descriptor
	// Workers is how many tasks of one controller are done at a time at most; 16 if
	// 0. Controllers do not wait for each other.
	Workers int
}

// An Engine runs controllers over one store.
type Engine struct {
	objects Objects
	follow  func(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error]
	members []member
	kinds   string // begins the keys of CustomResourceDefinitions
	seen    atomic.Int64

	mu    sync.Mutex // held by who shows an event
	event Event      // the one that controllers are shown

	services        string        // begins the keys of APIServices
	servicesChanged chan struct{} // something has happened to those
	followers       sync.WaitGroup
}

// Settled reports whether the controllers were shown everything up to a revision and have nothing
// left to do: no task is being done, is to be done now, or has failed and will be tried again.
// Tasks that wait for a later time, or for a kind to be served, are not looked at.
func (e *Engine) Settled(revision int64) bool {
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
	all    bool     // it looks at all keys
	others bool     // and at those of other servers
	keys   []string // the prefixes it looks at, otherwise
}

// New returns an Engine, which does nothing before Run.
func New(o Options) *Engine {
	o.Objects.complete()
	if o.Workers == 0 {
		o.Workers = 16
	}
	e := &Engine{
		objects: o.Objects,
		follow:  o.Follow,
		kinds:   o.Objects.DefinitionPrefix(),

		services: o.Objects.Prefix("apiregistration.k8s.io", "apiservices"), servicesChanged: make(chan struct{}, 1),
	}
	for _, d := range o.Controllers {
		q := newQueue(o.Workers, e.objects.Logger.With("controller", d.Name))
		m := member{Controller: d.New(&e.objects, q), queue: q}
		q.do = m.Do
		for _, prefix := range m.Keys() {
			m.all = m.all || prefix == ""
			m.keys = append(m.keys, prefix)
		}
		m.others = m.all && d.Others
		e.members = append(e.members, m)
	}
	return e
}

// Run does what there is to do, and what comes up, until ctx ends. It returns
// nil then, and otherwise the error of a store that will not answer any more. It
// runs once.
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
