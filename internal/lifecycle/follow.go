package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// pageSize is how many objects are read at a time.
const pageSize = 500

// prefixes are where the objects are stored that mean something by themselves.
type prefixes struct {
	namespaces, serviceAccounts, configMaps, events, kinds, migrations string
}

// prefixesOf finds them among the kinds that are built in. A kind that is not
// served has a prefix that no key has.
func prefixesOf(set *resource.Set) prefixes {
	of := func(group, plural string) string {
		if d := set.Lookup(group, plural); d != nil {
			return d.StoragePrefix
		}
		return "\x00"
	}
	return prefixes{
		namespaces:      of("", "namespaces"),
		serviceAccounts: of("", "serviceaccounts"),
		configMaps:      of("", "configmaps"),
		events:          of("", "events"),
		kinds:           of("apiextensions.k8s.io", "customresourcedefinitions"),
		migrations:      of("storagemigration.k8s.io", "storageversionmigrations"),
	}
}

// follow looks at all that is stored and then at what happens, until an error.
func (l *Lifecycle) follow(ctx context.Context) error {
	p := prefixesOf(l.Catalog.Set())
	revision, err := l.load(ctx, &p)
	if err != nil {
		return err
	}
	for batch, err := range l.Follow(ctx, root, revision) {
		if err != nil {
			return err
		}
		for i := range batch.Events {
			l.see(&p, &batch.Events[i])
		}
	}
	return errors.New("the feed of the store ended")
}

// load looks at everything once, page by page of one state of the store, and
// returns the revision of it.
func (l *Lifecycle) load(ctx context.Context, p *prefixes) (revision int64, err error) {
	known := newOwners()
	tasks := []task{{do: review}, {do: expire}}
	within := kv.Range{Prefix: root, Limit: pageSize}
	for more := true; more; {
		page, err := l.Backend.List(ctx, within)
		if err != nil {
			return 0, err
		}
		for i := range page.Records {
			tasks = append(tasks, l.loadRecord(p, known, &page.Records[i])...)
		}
		if more = page.More; more {
			within.After = page.Records[len(page.Records)-1].Key
		}
		within.Revision = page.Revision
	}
	l.owners.replace(known)
	l.queue.add(l.unknown.turn()...)
	l.queue.add(tasks...)
	return within.Revision, nil
}

func (l *Lifecycle) loadRecord(p *prefixes, known *owners, r *kv.Record) (tasks []task) {
	switch {
	case strings.HasPrefix(r.Key, p.events):
		return nil
	case strings.HasPrefix(r.Key, p.namespaces):
		tasks = l.seeNamespace(p, &kv.Event{Key: r.Key, Value: r.Value, Revision: r.Revision})
	case strings.HasPrefix(r.Key, p.migrations):
		tasks = seeMigration(&kv.Event{Key: r.Key, Value: r.Value})
	case strings.HasPrefix(r.Key, p.kinds):
		tasks = seeDefinition(p, &kv.Event{Key: r.Key, Value: r.Value})
	}
	if !matters(r.Value) {
		return tasks
	}
	h, err := readHeader(r.Key, r.Value, r.Revision)
	if err != nil {
		return tasks
	}
	for _, t := range known.put(h) {
		// The rest is in the review of all.
		if t.do == await || t.do == orphan {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// What an object has that names owners, and one that is going. What begins with
// a letter that is rare in JSON is found many times faster.
var (
	references = []byte(`References"`)
	named      = []byte(`"ownerReferences"`)
	deleted    = []byte(`deletionTimestamp"`)
)

// matters reports whether an object may name owners or be one that is going. It
// is asked of every write, so it does not parse.
func matters(value []byte) bool {
	return bytes.Contains(value, references) && bytes.Contains(value, named) || bytes.Contains(value, deleted)
}

// see finds out what there is to do about an event.
func (l *Lifecycle) see(p *prefixes, e *kv.Event) {
	l.leaving.see(e, l.queue)
	switch {
	case strings.HasPrefix(e.Key, p.events):
		if e.Value != nil {
			l.queue.after(task{do: expire}, l.EventTTL)
		}
		return // events own nothing and are not collected
	case strings.HasPrefix(e.Key, p.namespaces):
		l.queue.add(l.seeNamespace(p, e)...)
	case strings.HasPrefix(e.Key, p.kinds):
		l.queue.add(l.unknown.turn()...)
		l.queue.add(seeDefinition(p, e)...)
	case strings.HasPrefix(e.Key, p.migrations):
		l.queue.add(seeMigration(e)...)
	case provided(p, e):
		l.queue.add(task{do: provide, key: namespaceOf(e.Key)})
	}
	switch {
	case e.Value == nil:
		l.seeGone(e)
	case l.owners.knows(e.Key) || matters(e.Value):
		h, err := readHeader(e.Key, e.Value, e.Revision)
		if err != nil {
			l.Logger.Warn("an object that cannot be read has no owners", "key", e.Key, "error", err)
			h = &header{key: e.Key}
		}
		l.queue.add(l.owners.put(h)...)
	}
}

func (l *Lifecycle) seeGone(e *kv.Event) {
	if l.owners.empty() {
		return
	}
	was, err := object.Scan(e.Prev, e.PrevRevision)
	if err != nil {
		// Whose owner it was can only be found out by looking at all.
		l.queue.add(task{do: review})
	}
	l.queue.add(l.owners.gone(e.Key, was.UID)...)
}

func (l *Lifecycle) seeNamespace(p *prefixes, e *kv.Event) []task {
	name := strings.TrimPrefix(e.Key, p.namespaces)
	if e.Value == nil {
		l.leaving.forget(name)
		return nil
	}
	now, err := object.Scan(e.Value, e.Revision)
	if err != nil {
		return nil
	}
	if !now.Deleting {
		return []task{{do: provide, key: name}}
	}
	if was, err := object.Scan(e.Prev, e.PrevRevision); err == nil && was.Deleting {
		return nil
	}
	return []task{{do: terminate, key: name}}
}

// provided reports whether an event is about an object that every namespace has.
func provided(p *prefixes, e *kv.Event) bool {
	return e.Value == nil && strings.HasPrefix(e.Key, p.serviceAccounts) && strings.HasSuffix(e.Key, "/"+defaultAccount) ||
		strings.HasPrefix(e.Key, p.configMaps) && strings.HasSuffix(e.Key, "/"+rootCA)
}
