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
			t.Scan(func(_ string, o *Object) bool {
				s.bytes += o.size()
				return true
			})
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
		return c.present(ctx, prefix)
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
				t.Set(e.Key, c.object(e.Key, e.Value, e.Revision))
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

// object returns the object of the present value of a key.
func (c *Cache) object(key string, value []byte, revision int64) *Object {
	o, v := newObject(&c.shapes, key, value, revision)
	if c.loader == nil || v.err != nil {
		o.keep(v)
		return o
	}
	o.content.Store(v)
	c.hot.admit(o, v)
	return o
}

const (
	// loadPage is the number of values read at once.
	loadPage = 512
	// maxReads limits the attempts to read a resource in pages. A compaction interrupts an attempt.
	maxReads = 3
)

// present builds a tree of the newest state that is read. It is read in pages if values need not be in memory; those
// that fit are.
func (c *Cache) present(ctx context.Context, prefix string) (*tree, kv.Page, error) {
	page := loadPage
	for try := 0; ; try++ {
		if c.loader == nil || try == maxReads {
			page = 0
		}
		t, read, err := c.read(ctx, kv.Range{Prefix: prefix, Limit: page}, nil)
		var compacted *kv.CompactedError
		if page == 0 || !errors.As(err, &compacted) {
			return t, read, err
		}
	}
}

// past builds a tree of an earlier state. It reuses objects of known with the same revision.
func (c *Cache) past(ctx context.Context, prefix string, revision int64, known *tree) (*tree, error) {
	page := loadPage
	if c.loader == nil {
		page = 0
	}
	t, _, err := c.read(ctx, kv.Range{Prefix: prefix, Limit: page, Revision: revision}, known)
	return t, err
}

// read builds a tree of one state of the map, page by page. It reuses objects of known with the same revision.
func (c *Cache) read(ctx context.Context, r kv.Range, known *tree) (*tree, kv.Page, error) {
	started, latest := c.revision.Load(), r.Revision == kv.Latest
	t := new(tree)
	for {
		page, err := c.backend.List(ctx, r)
		if err != nil {
			return nil, kv.Page{}, err
		}
		if latest && page.Revision < started {
			return nil, kv.Page{}, fmt.Errorf("the store is at revision %d, and was at %d before", page.Revision, started)
		}
		for i := range page.Records {
			record := &page.Records[i]
			if known != nil {
				if o, ok := known.Get(record.Key); ok && o.Revision == record.Revision {
					t.Load(o.Key, o)
					continue
				}
			}
			t.Load(record.Key, c.stored(record, latest))
		}
		if !page.More {
			return t, kv.Page{Revision: page.Revision}, nil
		}
		r.After, r.Revision = page.Records[len(page.Records)-1].Key, page.Revision
	}
}

// stored returns the object of a record. Only a value of the newest state can be loaded again.
func (c *Cache) stored(r *kv.Record, latest bool) *Object {
	o, v := newObject(&c.shapes, r.Key, r.Value, r.Revision)
	if !latest || c.loader == nil || v.err != nil {
		o.keep(v)
	} else if c.hot.room(o.cost()) {
		o.content.Store(v)
		c.hot.admit(o, v)
	}
	return o
}
