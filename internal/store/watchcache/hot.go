package watchcache

import "sync"

// hot decides which values stay in memory: those that were used lately, within a budget for the whole cache.
//
// A new value is on probation, in a small part of the budget, in the order of arrival. If it is used again there
// or soon after its eviction, it becomes one of the proven, among which the eviction goes around and spares each
// value that was used since the last round. So a list of everything replaces only values on probation.
type hot struct {
	budget int64

	mu        sync.Mutex
	probation queue
	proven    queue
	probing   int64 // bytes on probation
	bytes     int64 // in both
	admitted  int64 // bytes, ever
}

const (
	// contentSize is about the memory of a value besides its JSON.
	contentSize = 256
	// probationPart is the part of the budget that is for values on probation.
	probationPart = 8
	// maxGoAround limits the spared values of one admission.
	maxGoAround = 64
)

func (o *Object) cost() int64 { return int64(o.bytes) + contentSize }

// round counts how often the budget was filled; it is never 0.
func (h *hot) round() uint8 { return uint8(h.admitted/max(h.budget, 1)%255) + 1 }

// room reports whether a value fits without an eviction.
func (h *hot) room(bytes int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes+bytes <= h.budget
}

// admit accounts for the value of an object, which has just got into memory.
func (h *hot) admit(o *Object) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.admitted += o.cost()
	h.bytes += o.cost()
	if soon := h.round(); o.evicted == soon || o.evicted != 0 && o.evicted%255+1 == soon {
		h.proven.push(o)
	} else {
		h.probing += o.cost()
		h.probation.push(o)
	}
	spared := 0
	for h.bytes > h.budget {
		if h.probing > h.budget/probationPart || h.proven.len() == 0 {
			h.decide()
			continue
		}
		next := h.proven.pop()
		if c := next.content.Load(); spared < maxGoAround && c != nil && !next.pinned.Load() && c.used.Swap(false) {
			h.proven.push(next)
			spared++
			continue
		}
		h.drop(next)
	}
}

// decide ends the probation of the oldest value.
func (h *hot) decide() {
	o := h.probation.pop()
	h.probing -= o.cost()
	if c := o.content.Load(); c != nil && !o.pinned.Load() && c.used.Swap(false) {
		h.proven.push(o)
		return
	}
	h.drop(o)
}

// drop evicts a value, unless the object keeps it.
func (h *hot) drop(o *Object) {
	h.bytes -= o.cost()
	if !o.pinned.Load() {
		o.evicted = h.round()
		o.evict()
	}
}

// forget drops the values of objects.
func (h *hot) forget(of func(*Object) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range []*queue{&h.probation, &h.proven} {
		for range q.len() {
			o := q.pop()
			if !of(o) {
				q.push(o)
				continue
			}
			if q == &h.probation {
				h.probing -= o.cost()
			}
			h.drop(o)
		}
	}
}

// A queue is a ring of objects.
type queue struct {
	ring  []*Object
	first int
	count int
}

func (q *queue) len() int { return q.count }

func (q *queue) push(o *Object) {
	if q.count == len(q.ring) {
		ring := make([]*Object, max(16, 2*q.count))
		n := copy(ring, q.ring[q.first:])
		copy(ring[n:], q.ring[:q.first])
		q.ring, q.first = ring, 0
	}
	q.ring[(q.first+q.count)%len(q.ring)] = o
	q.count++
}

func (q *queue) pop() *Object {
	o := q.ring[q.first]
	q.ring[q.first] = nil
	q.first = (q.first + 1) % len(q.ring)
	q.count--
	return o
}
