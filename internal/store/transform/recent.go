package transform

import (
	"bytes"
	"sync"

	"github.com/anykind/anykind/internal/store/kv"
)

// recentBytes limits the bytes of recent values, as stored and plain.
const recentBytes = 4 << 20

// recent has the plain values of the newest writes, so that watches decode only writes of others.
type recent struct {
	mu    sync.Mutex
	all   map[string]*written
	order []*written // oldest first
	bytes int
}

// A written is a write of a value. Its event has the same stored value.
type written struct {
	key           string
	stored, plain []byte
	expect        int64  // the revision of was
	was           []byte // the plain value before; nil if it is not known
}

func (w *written) size() int { return len(w.key) + len(w.stored) + len(w.plain) + len(w.was) }

// add remembers a write before its commit: the event may come before the commit returns.
func (r *recent) add(w *written) {
	if len(w.stored) == 0 || len(w.plain) == len(w.stored) && &w.plain[0] == &w.stored[0] {
		return // nothing to decode
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]*written{}
	}
	r.all[w.key] = w
	r.order = append(r.order, w)
	r.bytes += w.size()
	for r.bytes > recentBytes {
		oldest := r.order[0]
		r.order[0], r.order = nil, r.order[1:]
		r.bytes -= oldest.size()
		if r.all[oldest.key] == oldest {
			delete(r.all, oldest.key)
		}
	}
}

// of returns the write of an event, or nil.
func (r *recent) of(e *kv.Event) *written {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.all[e.Key]; w != nil && bytes.Equal(w.stored, e.Value) {
		return w
	}
	return nil
}
