package controller

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// pageSize is the number of objects in a page of a load.
const pageSize = 500

// feed delivers a load and then events to the controllers, until an error.
func (e *Engine) feed(ctx context.Context) error {
	revision, err := e.load(ctx)
	if err != nil {
		return err
	}
	e.seen.Store(revision)
	if e.objects.Aggregated != nil && slices.ContainsFunc(e.members, func(m member) bool { return m.others }) {
		ctx, end := context.WithCancel(ctx)
		e.followers.Go(func() { e.followOthers(ctx) })
		defer e.followers.Wait()
		defer end()
	}
	for batch, err := range e.follow(ctx, resource.Root, revision) {
		if err != nil {
			return err
		}
		for i := range batch.Events {
			e.see(&batch.Events[i])
		}
		e.seen.Store(batch.Revision)
	}
	return errors.New("the feed of the store ended")
}

// load delivers all stored objects of one revision, page by page, and returns the revision. Tasks
// are held until it ends.
func (e *Engine) load(ctx context.Context) (revision int64, err error) {
	for _, m := range e.members {
		m.queue.hold()
		if l, ok := m.Controller.(Loader); ok {
			l.Load()
		}
	}
	for _, prefix := range e.ranges() {
		if revision, err = e.loadRange(ctx, prefix, revision); err != nil {
			return 0, err
		}
	}
	for _, m := range e.members {
		if l, ok := m.Controller.(Loader); ok {
			l.Loaded()
		}
		m.queue.retryUnknown()
		m.queue.release()
	}
	return revision, nil
}

// ranges returns the key prefixes to load, without prefixes that another one contains.
func (e *Engine) ranges() []string {
	var all []string
	for _, m := range e.members {
		if m.all {
			return []string{resource.Root}
		}
		all = append(all, m.keys...)
	}
	slices.Sort(all)
	var ranges []string
	for _, prefix := range all {
		if last := len(ranges) - 1; last < 0 || !strings.HasPrefix(prefix, ranges[last]) {
			ranges = append(ranges, prefix)
		}
	}
	return ranges
}

func (e *Engine) loadRange(ctx context.Context, prefix string, revision int64) (int64, error) {
	within := kv.Range{Prefix: prefix, Limit: pageSize, Revision: revision}
	for {
		page, err := e.objects.Backend.List(ctx, within)
		if err != nil {
			return 0, err
		}
		for i := range page.Records {
			r := &page.Records[i]
			e.show(&kv.Event{Key: r.Key, Value: r.Value, Revision: r.Revision}, true)
		}
		if !page.More {
			return page.Revision, nil
		}
		within.After = page.Records[len(page.Records)-1].Key
		within.Revision = page.Revision
	}
}

// see delivers an event to the controllers that observe its key.
func (e *Engine) see(event *kv.Event) {
	if strings.HasPrefix(event.Key, e.kinds) {
		e.retryUnknown()
	}
	if strings.HasPrefix(event.Key, e.services) {
		select {
		case e.servicesChanged <- struct{}{}:
		default: // a signal is already pending
		}
	}
	e.show(event, false)
}

func (e *Engine) show(event *kv.Event, loading bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.event.reset(event, loading)
	for i := range e.members {
		if m := &e.members[i]; m.looksAt(event.Key) {
			m.See(&e.event)
		}
	}
}

func (m *member) looksAt(key string) bool {
	if m.all {
		return true
	}
	for _, prefix := range m.keys {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
