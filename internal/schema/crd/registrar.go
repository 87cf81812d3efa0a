package crd

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/crd/compile"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Objects writes objects. The registry implements it.
type Objects interface {
	Modify(ctx context.Context, target registry.Target, change registry.Change, o registry.WriteOptions) (registry.Result, error)
}

// Options of a Registrar. Cache, Catalog and Objects are needed.
type Options struct {
	Cache   *watchcache.Cache
	Catalog *resource.Catalog
	Objects Objects
	// BuiltIn are the served built-in Definitions, except the one of the kind
	// CustomResourceDefinition.
	BuiltIn []*resource.Definition
	// Conversion calls the webhooks of CustomResourceDefinitions that have one.
	Conversion compile.Conversion
	// Compiled shares compiled schemas with other Registrars; nil for a new one.
	Compiled *compile.Shared
	// Over is a Registrar of the store that the one of Cache is over, see memkv.Options.Over. Nil for none.
	Over *Registrar
	// Base is the revision of the state that the store is over.
	Base int64
	// Shared is true if other servers write to the store. Their objects may not be complete by the
	// schema.
	Shared bool
	Logger *slog.Logger     // slog.Default if nil
	Now    func() time.Time // time.Now if nil
}

// A Registrar keeps the Catalog in line with the stored CustomResourceDefinitions, written by this or
// any other server. One goroutine follows them, another one drops idle schemas. Further ones exist
// only for pending tasks, such as giving away a name.
//
// Locks: writing before mu. The following goroutine never takes writing, so that a write may wait for
// it.
type Registrar struct {
	o    Options
	self *resource.Definition
	// writing is held by the one write of a CustomResourceDefinition that is
	// under way in this process.
	writing chan struct{}
	tasks   *tasks
	stopped chan struct{} // closed when Run has returned

	compiler compile.Compiler // of the following goroutine

	mu      sync.Mutex
	known   index
	applied int64         // revision of the Catalog; 0 before the first load
	moved   chan struct{} // closed when applied changes, and then replaced
}

// New returns a Registrar, which does nothing before Run. From now on the Catalog has the built-in
// kinds.
func New(o Options) *Registrar {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Compiled == nil {
		o.Compiled = compile.NewShared()
	}
	r := &Registrar{
		o:       o,
		writing: make(chan struct{}, 1),
		tasks:   newTasks(o.Logger),
		stopped: make(chan struct{}),
		moved:   make(chan struct{}),

		compiler: compile.Compiler{Conversion: o.Conversion, Shared: o.Compiled},
	}
	r.self = definition(r)
	own := append(slices.Clone(o.BuiltIn), r.self)
	if o.Over == nil {
		o.Catalog.Swap(resource.NewSet(own))
		return r
	}
	var set *resource.Set
	r.known, set = o.Over.until(o.Base)
	served := map[*resource.Definition]bool{}
	for d := range set.All() {
		served[d] = true
	}
	var out, in []*resource.Definition
	for _, d := range own {
		if served[d] {
			delete(served, d)
		} else {
			in = append(in, d)
		}
	}
	r.known.all.Scan(func(_ string, e *entry) bool {
		switch {
		case e.definition == nil:
		case served[e.definition]:
			delete(served, e.definition)
		default:
			in = append(in, e.definition)
		}
		return true
	})
	for d := range served {
		out = append(out, d)
	}
	o.Catalog.Swap(set.With(out, in))
	return r
}

// until returns the entries whose objects were last written until a revision, and about their Definitions with the
// built-in ones.
func (r *Registrar) until(revision int64) (known index, about *resource.Set) {
	r.mu.Lock()
	known = r.known.copy()
	about = r.o.Catalog.Set()
	r.mu.Unlock()
	var later []*entry
	known.all.Scan(func(_ string, e *entry) bool {
		if e.revision > revision {
			later = append(later, e)
		}
		return true
	})
	for _, e := range later {
		known.put(change{old: e})
	}
	return known, about
}

// servesBuiltIn reports whether a version of a group has built-in kinds. Definitions cannot add kinds
// to it: in Kubernetes, the server of the built-in kinds handles every request for the version.
func (r *Registrar) servesBuiltIn(group, version string) bool {
	has := func(d *resource.Definition) bool {
		v := d.Version(version)
		return d.Group == group && v != nil && v.Served
	}
	return has(r.self) || slices.ContainsFunc(r.o.BuiltIn, has)
}

// Definition returns the Definition of the kind CustomResourceDefinition.
func (r *Registrar) Definition() *resource.Definition { return r.self }

// Run follows the stored definitions until ctx ends. It logs errors of the store and retries; served
// definitions stay served meanwhile.
func (r *Registrar) Run(ctx context.Context) error {
	defer close(r.stopped)
	ctx, cancel := context.WithCancel(ctx)
	defer r.tasks.wait()
	defer cancel()
	if r.o.Over == nil { // it drops those of both
		r.tasks.running.Go(func() { compile.DropIdle(ctx, r.o.Catalog) })
	}
	var delay backoff
	for {
		err := r.follow(ctx, &delay)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, watchcache.ErrStopped) {
			return err
		}
		r.o.Logger.Warn("the watch of CustomResourceDefinitions was interrupted", "err", err)
		if err := delay.wait(ctx); err != nil {
			return err
		}
	}
}

// follow loads the stored definitions and then applies changes, until an error.
func (r *Registrar) follow(ctx context.Context, delay *backoff) error {
	stored := r.o.Cache.Resource(Prefix)
	snapshot, err := stored.Snapshot(ctx, kv.Latest)
	if err != nil {
		return err
	}
	r.load(ctx, snapshot)
	watcher, err := stored.Watch(ctx, Prefix, snapshot.Revision())
	if err != nil {
		return err
	}
	defer watcher.Close()
	for {
		batch, err := watcher.Next(ctx)
		if err != nil {
			return err
		}
		delay.reset()
		// The cache must first have all events of the objects of a deleted definition: their watchers
		// get them before their end.
		if err := r.o.Cache.Wait(ctx, batch.Revision); err != nil {
			return err
		}
		r.apply(ctx, batch)
	}
}

// load replaces the known definitions by a snapshot.
func (r *Registrar) load(ctx context.Context, snapshot *watchcache.Snapshot) {
	var changes []change
	for o := range snapshot.Scan(Prefix, "") {
		old := r.known.get(nameOf(o.Key))
		if old == nil || old.revision != o.Revision || old.unread() {
			changes = append(changes, change{old: old, now: r.read(o, old)})
		}
	}
	r.known.all.Scan(func(name string, e *entry) bool {
		if snapshot.Get(Prefix+name) == nil {
			changes = append(changes, change{old: e})
		}
		return true
	})
	r.install(ctx, changes, snapshot.Revision())
}

// apply records a batch of events.
func (r *Registrar) apply(ctx context.Context, batch watchcache.Batch) {
	changes := make([]change, 0, len(batch.Events))
	latest := map[string]*entry{} // of this batch
	for _, e := range batch.Events {
		name := nameOf(e.Key())
		old, seen := latest[name]
		if !seen {
			old = r.known.get(name)
		}
		c := change{old: old}
		if e.Object != nil {
			c.now = r.read(e.Object, old)
		}
		latest[name] = c.now
		changes = append(changes, c)
	}
	r.install(ctx, changes, batch.Revision)
}

// install records and publishes changes, then releases the writes that wait for them, then starts
// their consequences.
func (r *Registrar) install(ctx context.Context, changes []change, revision int64) {
	serve := false
	r.mu.Lock()
	for _, c := range changes {
		r.known.put(c)
		serve = serve || c.definition()
	}
	r.mu.Unlock()
	if serve {
		r.publish(changes)
	}
	for _, c := range changes {
		r.forget(c)
	}
	r.mu.Lock()
	r.applied = max(r.applied, revision)
	close(r.moved)
	r.moved = make(chan struct{})
	r.mu.Unlock()
	for _, c := range changes {
		r.followUp(ctx, c)
	}
}

// publish updates the Catalog with recorded changes.
func (r *Registrar) publish(changes []change) {
	var out, in []*resource.Definition
	r.mu.Lock()
	for _, c := range changes {
		if c.old != nil && c.old.definition != nil {
			out = append(out, c.old.definition)
		}
		// Of several changes to one name only the last counts.
		if c.now != nil && c.now.definition != nil && r.known.get(c.now.name) == c.now {
			in = append(in, c.now.definition)
		}
	}
	r.mu.Unlock()
	r.o.Catalog.Swap(r.o.Catalog.Set().With(out, in))
}

// forget drops the objects of a removed resource from the cache.
func (r *Registrar) forget(c change) {
	if c.old == nil || c.old.definition == nil || c.now != nil && c.now.uid == c.old.uid {
		return
	}
	d := c.old.definition
	if r.o.Catalog.Set().Lookup(d.Group, d.Plural) == nil {
		r.o.Cache.Forget(d.StoragePrefix)
	}
}

// Committed returns once a write of a CustomResourceDefinition at revision is served.
func (r *Registrar) Committed(ctx context.Context, revision int64) error {
	if err := r.o.Cache.Wait(ctx, revision); err != nil {
		return err
	}
	for {
		r.mu.Lock()
		applied, moved := r.applied, r.moved
		r.mu.Unlock()
		if applied >= revision {
			return nil
		}
		if applied > 0 {
			quiet, err := r.quiet(ctx, applied, revision)
			if err != nil || quiet {
				return err
			}
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-r.stopped:
			return status.Unavailable("the server is shutting down")
		}
	}
}

// quiet reports whether there were no changes of CustomResourceDefinitions after one revision and up
// to another.
func (r *Registrar) quiet(ctx context.Context, after, revision int64) (bool, error) {
	w, err := r.o.Cache.Resource(Prefix).Watch(ctx, Prefix, after)
	if err != nil {
		return false, err
	}
	defer w.Close()
	return w.Progress() >= revision, nil
}

// Fresh returns once everything that was acknowledged before the call, by any
// process, is served.
func (r *Registrar) Fresh(ctx context.Context) error {
	revision, err := r.o.Cache.Fresh(ctx)
	if err != nil {
		return registry.StorageError(err)
	}
	return r.Committed(ctx, revision)
}

// Source returns a guard for the CustomResourceDefinition of a Definition; false for a built-in one. The
// guard does not hold if another Definition has replaced this one.
func (r *Registrar) Source(d *resource.Definition) (guard kv.Guard, ok bool) {
	if d.UID == "" {
		return kv.Guard{}, false
	}
	name := d.Plural + "." + d.Group
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.known.get(name); e != nil && e.definition == d {
		return kv.Guard{Key: Prefix + name, Revision: e.revision}, true
	}
	return kv.Guard{Key: Prefix + name, Revision: never}, true
}

// never is the revision of no object.
const never = -1

// begin admits one write at a time, after all earlier writes are known: names go to the first claim,
// so each write must see the earlier ones.
func (r *Registrar) begin(ctx context.Context) (end func(), err error) {
	select {
	case r.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := r.Fresh(ctx); err != nil {
		<-r.writing
		return nil, err
	}
	return func() { <-r.writing }, nil
}
