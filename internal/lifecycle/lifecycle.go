// Package lifecycle does to objects what follows from other objects: it empties
// a namespace that is deleted and lets it go, gives every namespace what it is
// never without, collects what has lost its owners, expires events, and migrates
// what is stored to another version. In a cluster, the controller manager does
// that.
//
// It follows the one feed of the store and otherwise sleeps. Of all objects it
// remembers those that name owners, and nothing of the others; a kind that is
// not involved is neither loaded nor looked at. Everything it does can be done
// twice, by two servers at once, or be taken up by another one in the middle.
//
// It knows the metadata of objects and the few kinds that it makes itself. How
// an object is written, and what a deletion records, is known to the registry.
package lifecycle

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/resource"
)

// Options of a Lifecycle. Backend, Follow, Catalog and Registry are needed; the Catalog
// serves namespaces from the start.
type Options struct {
	Backend kv.Backend
	// Follow yields what happens to keys with a prefix after a revision, like a watch
	// of the Backend, without being one more.
	Follow   func(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error]
	Catalog  *resource.Catalog
	Registry *registry.Registry
	// Refresh returns once the Catalog has everything that was committed before
	// the call. It is called before something is taken for unknown.
	Refresh func(context.Context) error
	// CA is the bundle that every namespace gets in its ConfigMap
	// kube-root-ca.crt; without one there is no such ConfigMap.
	CA []byte
	// EventTTL is how long an event is kept after it was written; an hour if 0.
	EventTTL time.Duration
	// Workers is how much is done at a time at most; 16 if 0.
	Workers int
	Now     func() time.Time // time.Now if nil
	Logger  *slog.Logger     // slog.Default if nil
}

// A Lifecycle is the work on one store.
type Lifecycle struct {
	Options
	queue   *queue
	owners  *owners
	leaving leaving
	unknown unknown
}

// manager is what the work is recorded as in managedFields.
const manager = "kube-controller-manager"

// New returns a Lifecycle, which does nothing before Run.
func New(o Options) *Lifecycle {
	if o.Refresh == nil {
		o.Refresh = func(context.Context) error { return nil }
	}
	if o.EventTTL == 0 {
		o.EventTTL = time.Hour
	}
	if o.Workers == 0 {
		o.Workers = 16
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Lifecycle{Options: o, owners: newOwners()}
}

// Run does what there is to do, and what comes up, until ctx ends. It returns
// nil then, and otherwise the error of a store that will not answer any more. It
// runs once.
func (l *Lifecycle) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.queue = newQueue(ctx, l.Workers, l.do, l.Logger)
	defer l.queue.wait()
	defer cancel()
	const shortest, longest = 100 * time.Millisecond, 10 * time.Second
	for delay := shortest; ; delay = min(2*delay, longest) {
		began := l.Now()
		err := l.follow(ctx)
		var damage *kv.CorruptError
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, kv.ErrClosed), errors.As(err, &damage):
			return err
		}
		if l.Now().Sub(began) > longest {
			delay = shortest
		}
		l.Logger.Warn("following the store was interrupted; what is stored will be looked at again", "error", err)
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
}

// What there is to do.
type verb uint8

const (
	review    verb = iota // see whether the owners of all objects are there
	check                 // see whether the owners that an object has named are there
	collect               // see whether an object has lost its owners
	await                 // see whether an object still waits for its dependents to go
	orphan                // make the dependents of an object forget it
	provide               // give a namespace what it is never without
	terminate             // empty a namespace and let it go
	expire                // delete old events
	migrate               // store the objects of a resource in its storage version
)

func (v verb) String() string {
	return [...]string{"review", "check", "collect", "await", "orphan", "provide", "terminate", "expire", "migrate"}[v]
}

// A task is one thing to do, at an object or a namespace.
type task struct {
	do  verb
	key string // of the object; the resource, for migrate
	uid string // of the object, for those verbs that are about owners
}

func (l *Lifecycle) do(ctx context.Context, t task) error {
	switch t.do {
	case review:
		return l.review(ctx)
	case check, collect:
		began := l.unknown.begin()
		return l.unknown.park(t, began, l.collect(ctx, t), l.queue)
	case await:
		return l.await(ctx, t)
	case orphan:
		return l.orphan(ctx, t)
	case provide:
		return l.provide(ctx, t.key)
	case terminate:
		return l.terminate(ctx, t.key)
	case migrate:
		return l.migrate(ctx, schema.ParseGroupResource(t.key))
	default:
		return l.expire(ctx)
	}
}
