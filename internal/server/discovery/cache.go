package discovery

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/peer"
)

// A cache holds documents of the Handler. Handler.mu guards it. Any part may be dropped at any
// time.
type cache struct {
	view *groups

	// Of the view. others contains remote.
	core, others *document
	remote       remotes
	size         int // of the last aggregate: an estimate for the next

	// merged is mergedOf with the groups of peers.
	merged, mergedOf *document
	peers            *peer.Groups

	// items are the parts of single resources in an aggregate.
	items resource.PerVersion[[]byte]

	timer *time.Timer
}

// follow returns the current groups, and drops cached parts of others. The caller holds mu.
func (h *Handler) follow(services *aggregate.Services) *groups {
	c, set := &h.cache, h.catalog.Set()
	if c.view != nil && c.view.set == set && c.view.services == services {
		return c.view
	}
	now := newGroups(set, services)
	if c.view == nil || !c.view.equal(now) {
		c.core, c.others = nil, nil
	}
	c.view = now
	h.forgetLater()
	return now
}

// aggregated returns aggregated discovery of the core group or of all others.
func (h *Handler) aggregated(ctx context.Context, core bool) *document {
	services := h.services(ctx)
	var said remotes
	if !core {
		said = h.remotes(ctx, services)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	v, c := h.follow(services), &h.cache
	h.forgetLater()
	made := &c.others
	if core {
		made = &c.core
	} else if !c.remote.equal(said) {
		c.remote, c.others = said, nil
	}
	if *made == nil {
		c.items.Retain(v.set)
		*made = buildAggregate(v.groups, core, h.item, said, c.size)
		c.size = len((*made).doc)
	}
	return *made
}

// item returns the part of one resource in one version of aggregated discovery.
func (h *Handler) item(d *resource.Definition, v *resource.Version) []byte {
	return h.cache.items.Get(d, v, aggregatedResource)
}

// forgetLater drops the cache after Idle without a request.
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
