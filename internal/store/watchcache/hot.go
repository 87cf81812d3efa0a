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

// admit accounts for the value of an object that has just been loaded.
func (h *hot) admit(o *Object, c *content) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.charged = o.cost()
	h.admitted += c.charged
	h.bytes += c.charged
	v := value{o, c}
	if soon := h.round(); o.evicted == soon || o.evicted != 0 && o.evicted%255+1 == soon {
		h.prove(v)
	} else {
		h.probing += c.charged
		h.probation.push(v)
	}
	h.shrink()
}

// grow accounts for a result that is kept with a value.
func (h *hot) grow(c *content, bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.charged == 0 {
		return
	}
	c.charged += bytes
	h.bytes += bytes
	if !c.proven {
		h.probing += bytes
	}
	h.shrink()
}

// shrink evicts values until the budget suffices.
func (h *hot) shrink() {
	spared := 0
	for h.bytes > h.budget {
		if h.probing > h.budget/probationPart || h.proven.len() == 0 {
			h.decide()
			continue
		}
		next := h.proven.pop()
		if spared < maxGoAround && !next.object.pinned.Load() && next.content.used.Swap(false) {
			h.proven.push(next)
			spared++
			continue
		}
		h.drop(next)
	}
}

// decide ends the probation of the oldest value.
func (h *hot) decide() {
	v := h.probation.pop()
	h.probing -= v.content.charged
	if !v.object.pinned.Load() && v.content.used.Swap(false) {
		h.prove(v)
		return
	}
	h.drop(v)
}

func (h *hot) prove(v value) {
	v.content.proven = true
	h.proven.push(v)
}

// drop evicts a value, unless the object keeps it.
func (h *hot) drop(v value) {
	h.bytes -= v.content.charged
	v.content.charged = 0
	if !v.object.pinned.Load() {
		v.object.evicted = h.round()
		v.object.evict(v.content)
	}
}

// forget drops the values of objects.
func (h *hot) forget(of func(*Object) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, q := range []*queue{&h.probation, &h.proven} {
		for range q.len() {
			v := q.pop()
			if !of(v.object) {
				q.push(v)
				continue
			}
			if q == &h.probation {
				h.probing -= v.content.charged
			}
			h.drop(v)
		}
	}
}

// A value is in memory because it is hot.
type value struct {
	object  *Object
	content *content
}

// A queue is a ring of values.
type queue struct {
	ring  []value
	first int
	count int
}

func (q *queue) len() int { return q.count }

func (q *queue) push(v value) {
	if q.count == len(q.ring) {
		ring := make([]value, max(16, 2*q.count))
		n := copy(ring, q.ring[q.first:])
		copy(ring[n:], q.ring[:q.first])
		q.ring, q.first = ring, 0
	}
	q.ring[(q.first+q.count)%len(q.ring)] = v
	q.count++
}

func (q *queue) pop() value {
	v := q.ring[q.first]
	q.ring[q.first] = value{}
	q.first = (q.first + 1) % len(q.ring)
	q.count--
	return v
}
