package discovery

import (
	"time"

	"github.com/anykind/anykind/internal/resource"
)

// A cache is what the Handler has made and may be asked for again. Handler.mu
// guards it. Everything in it can be thrown away at any time.
type cache struct {
	set *resource.Set

	// Of set as a whole.
	core, others *aggregate
	size         int // of the last aggregate, which the next will be near to

	// items are the parts of single resources in an aggregate.
	items resource.PerVersion[[]byte]

	timer *time.Timer
}

// aggregate returns the aggregate of the core group or of all others.
func (h *Handler) aggregate(core bool) *aggregate {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := &h.cache
	if set := h.catalog.Set(); c.set != set {
		c.set, c.core, c.others = set, nil, nil
	}
	h.forgetLater()
	made := &c.others
	if core {
		made = &c.core
	}
	if *made == nil {
		c.items.Retain(c.set)
		*made = buildAggregate(c.set, core, h.item, c.size)
		c.size = len((*made).doc)
	}
	return *made
}

// item returns the part of one resource in one version of an aggregate.
func (h *Handler) item(d *resource.Definition, v *resource.Version) []byte {
	return h.cache.items.Get(d, v, aggregatedResource)
}

// forgetLater sees to it that everything is forgotten one Idle from now, unless
// somebody asks again.
func (h *Handler) forgetLater() {
	if h.cache.timer != nil {
		h.cache.timer.Reset(h.options.Idle)
		return
	}
	h.cache.timer = time.AfterFunc(h.options.Idle, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.cache = cache{}
	})
}
