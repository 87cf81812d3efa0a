package watchcache

import (
	"context"
	"errors"
	"fmt"

	"github.com/anykind/anykind/internal/store/kv"
)

// A load reads a resource from the backend during the feed. It reads the newest state, because an
// older one may be compacted meanwhile. Events of the feed since the start of the load that the state
// lacks are applied on top of it.
type load struct {
	done chan struct{} // closed at the end
	err  error

	changes  []change // since the load began; needs state.mu
	revision int64    // of the last batch that had some
}

// acquire loads the resource if needed, and returns with s.mu held. Concurrent users wait for one load
// and share its error. A user after a failed load retries.
func (c *Cache) acquire(ctx context.Context, s *state) error {
	if c.revision.Load() == 0 {
		if err := c.Wait(ctx, 1); err != nil {
			return err
		}
	}
	for {
		s.mu.Lock()
		if s.gone {
			s.mu.Unlock()
			return ErrGone
		}
		if s.tree != nil {
			return nil
		}
		l := s.load
		if l == nil {
			l = &load{done: make(chan struct{})}
			s.load = l
			s.mu.Unlock()
			c.start(s, l)
		} else {
			s.mu.Unlock()
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if l.err != nil {
			return l.err
		}
	}
}

// start loads in the background, so that a canceled first user does not fail the others.
func (c *Cache) start(s *state, l *load) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.ended {
		s.finish(c, l, nil, kv.Page{}, c.why)
		return
	}
	c.loads.Go(func() {
		t, page, err := c.newest(c.run, s.prefix)
		switch {
		case c.run.Err() != nil:
			err = c.stopping()
		case err != nil:
			err = fmt.Errorf("loading %s: %w", s.prefix, err)
		}
		s.finish(c, l, t, page, err)
	})
}

// finish publishes the loaded tree, unless the resource was reset meanwhile.
func (s *state) finish(c *Cache, l *load, t *tree, page kv.Page, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.load == l {
		s.load = nil
		if l.err = err; err == nil {
			s.tree, s.bytes = t, 0
			for _, o := range t.Values() {
				s.bytes += o.bytes()
			}
			s.applied = page.Revision
			s.history = history{floor: page.Revision}
			s.apply(c, l.changes, l.revision, nil)
		}
	} else if errors.Is(err, ErrStopped) {
		l.err = err
	}
	l.changes = nil
	close(l.done)
}

// newest builds a tree of the newest state: that of Options.Over with the changes since, or one that is read.
func (c *Cache) newest(ctx context.Context, prefix string) (*tree, kv.Page, error) {
	t, err := c.begun(ctx, prefix)
	if err != nil {
		return nil, kv.Page{}, err
	}
	if t == nil {
		return c.read(ctx, kv.Range{Prefix: prefix}, nil)
	}
	reached := c.options.Base
	upTo, err := c.backend.Revision(ctx)
	if err != nil {
		return nil, kv.Page{}, err
	}
	for batch, err := range c.backend.Watch(ctx, prefix, reached) {
		var compacted *kv.CompactedError
		if errors.As(err, &compacted) {
			return c.read(ctx, kv.Range{Prefix: prefix}, t)
		}
		if err != nil {
			return nil, kv.Page{}, err
		}
		for _, e := range batch.Events {
			if e.Value == nil {
				t.Delete(e.Key)
			} else {
				t.Set(e.Key, NewObject(e.Key, e.Value, e.Revision))
			}
		}
		if reached = batch.Revision; reached >= upTo {
			break
		}
	}
	return t, kv.Page{Revision: reached}, nil
}

// begun returns a copy of the tree of Options.Over at the base; nil if there is none.
func (c *Cache) begun(ctx context.Context, prefix string) (*tree, error) {
	over := c.options.Over
	if over == nil {
		return nil, nil
	}
	state, err := over.Resource(prefix).Snapshot(ctx, c.options.Base)
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil: // it may stop; the state is in the store, too
		return nil, nil
	}
	over.copying.Lock()
	defer over.copying.Unlock()
	return state.tree.Copy(), nil
}

// read builds a tree of one state of the map. It reuses objects of known with the same revision.
func (c *Cache) read(ctx context.Context, r kv.Range, known *tree) (*tree, kv.Page, error) {
	started := c.revision.Load()
	page, err := c.backend.List(ctx, r)
	if err != nil {
		return nil, kv.Page{}, err
	}
	if r.Revision == kv.Latest && page.Revision < started {
		return nil, kv.Page{}, fmt.Errorf("the store is at revision %d, and was at %d before", page.Revision, started)
	}
	t := new(tree)
	for i := range page.Records {
		record := &page.Records[i]
		if known != nil {
			if o, ok := known.Get(record.Key); ok && o.Revision == record.Revision {
				t.Load(o.Key, o)
				continue
			}
		}
		t.Load(record.Key, NewObject(record.Key, record.Value, record.Revision))
	}
	page.Records = nil
	return t, page, nil
}
