package fairness

import (
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
)

// effort is an amount of work: seats times time, in units of 10 ns. It is also the unit of virtual
// time. Values are only compared by their difference, so that virtual time may overflow.
type effort int64

const effortsPerSecond = 1e8

// effortOf returns the work of some seats for some time.
func effortOf(seats float64, d time.Duration) effort {
	return effort(math.Round(seats * float64(d.Nanoseconds()) / (1e9 / effortsPerSecond)))
}

func (e effort) seconds() float64 { return float64(e) / effortsPerSecond }

// per returns the time in which some seats do the work.
func (e effort) per(seats int) time.Duration {
	return time.Duration(float64(e) / float64(seats) * (float64(time.Second) / effortsPerSecond))
}

// presumedDuration is the presumed duration of a request that is being served.
const presumedDuration = 3 * time.Millisecond

// A level serves the requests of a priority level with a limited number of seats.
//
// Requests beyond the limit wait in queues. The queue of a request is chosen by shuffle sharding,
// so that a flow with many requests can only fill a few of the queues. Seats are given to queues by
// fair queuing: the next request is the one that would finish first if all queues with requests
// progressed at the same speed. Virtual time is that progress. The duration of a request is presumed
// when it is dispatched, and corrected when it ends.
type level struct {
	name   string
	exempt bool // no limit
	gates  *gate.Set

	mu      sync.Mutex
	left    func() // called when the level is idle; nil unless it was deleted
	queuing queuing
	limit   int // seats
	queues  []*queue

	progress effort    // virtual time
	synced   time.Time // when progress was computed
	last     int       // index of the queue dispatched last
	dealt    int       // number of hands
	latest   *queue    // that got a request last; nil before the first one

	active      int // queues with requests that wait or are served
	queueSeats  int // seats that all queues use or wait for
	waiting     int
	waitSeats   int
	serving     int
	seats       int  // in use, also after the answer
	unqueued    list // requests that are served without a queue
	demand      demand
	flows       map[string]*flow // by the name of the FlowSchema
	drops       drops
	dispatched  int
	rejected    int
	cancelled   int
	atDispatch  dispatch
	waitRatio   ratio
	servedRatio ratio
	seatRatio   ratio
	demandRatio ratio
}

// queuing configures the queues of a level.
type queuing struct {
	queues, hand, length int // without queues, requests beyond the limit are rejected
}

// A dispatch has virtual times of the last dispatch, for metrics.
type dispatch struct{ progress, start effort }

// A queue has the requests of some flows.
type queue struct {
	index   int // in the level
	waiting list
	serving list
	next    effort // virtual start of the next request
	seats   int    // in use
	removed bool   // from the level
	waits   struct {
		initial, most int
		work          effort
	}
}

func (q *queue) busy() bool { return q.waiting.n > 0 || q.serving.n > 0 }

// A list is a doubly linked list of turns, oldest first.
type list struct {
	first, last *Turn
	n           int
}

func (l *list) add(t *Turn) {
	t.before, t.after = l.last, nil
	if l.last != nil {
		l.last.after = t
	} else {
		l.first = t
	}
	l.last = t
	l.n++
}

func (l *list) remove(t *Turn) {
	if t.before != nil {
		t.before.after = t.after
	} else {
		l.first = t.after
	}
	if t.after != nil {
		t.after.before = t.before
	} else {
		l.last = t.before
	}
	t.before, t.after = nil, nil
	l.n--
}

// A Turn is a request on its way through its level.
type Turn struct {
	request       *request.Request
	level         *level
	flow          *flow
	queue         *queue // nil without one
	distinguisher string
	work          Work
	effort, final effort

	arrived, started time.Time
	arrival          effort // virtual
	before, after    *Turn

	retryAfter int64         // seconds, if it was rejected
	end        func()        // of a watch, which is counted; else nil
	dispatched chan struct{} // closed when the request is dispatched; nil if it need not wait
	state      state
}

type state int8

const (
	isIdle state = iota
	isWaiting
	isServing
)

func newLevel(name string, exempt bool, gates *gate.Set) *level {
	l := &level{name: name, exempt: exempt, gates: gates, synced: time.Now(), flows: map[string]*flow{}}
	l.demand.begin(l.synced)
	for _, r := range []struct {
		*ratio
		bounds []float64
	}{{&l.waitRatio, requestRatios}, {&l.servedRatio, requestRatios}, {&l.seatRatio, seatRatios}, {&l.demandRatio, demandRatios}} {
		r.begin(l.synced, r.bounds)
	}
	return l
}

// configure sets the queues, the limit, and the denominator of ratios. For a deleted level, left is
// called when its last request has ended.
func (l *level) configure(q queuing, limit, denominator int, left func()) {
	now := l.lock()
	defer l.mu.Unlock()
	l.left = left
	if q.queues > 0 {
		for len(l.queues) < q.queues {
			l.queues = append(l.queues, &queue{index: len(l.queues)})
		}
		// More queues than that are removed when their last requests have freed their seats.
	} else {
		q.length, q.hand = l.queuing.length, l.queuing.hand
	}
	l.queuing, l.limit = q, limit
	l.waitRatio.divide(now, max(q.length, 1)*max(q.queues, 1))
	for _, r := range []*ratio{&l.servedRatio, &l.seatRatio, &l.demandRatio} {
		r.divide(now, denominator)
	}
	l.dispatch(now)
}

// lock locks the level and advances virtual time.
func (l *level) lock() time.Time {
	l.mu.Lock()
	now := time.Now()
	if l.active > 0 {
		speed := math.Min(float64(l.queueSeats), float64(l.limit)) / float64(l.active)
		l.progress += effortOf(speed, now.Sub(l.synced))
	}
	l.synced = now
	return now
}

// unlock unlocks the level after a request has left it.
func (l *level) unlock() {
	left := l.left
	if l.waiting > 0 || l.serving > 0 {
		left = nil
	}
	l.mu.Unlock()
	if left != nil {
		left()
	}
}

// flow returns the counters of a FlowSchema.
func (l *level) flow(schema string) *flow {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.flows[schema]
	if f == nil {
		f = newFlow(schema, l.gates)
		l.flows[schema] = f
	}
	return f
}

// forget drops the counters of FlowSchemas that have no class any more, nor requests.
func (l *level) forget(classes []*class) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.flows, func(_ string, f *flow) bool {
		return f.waiting == 0 && f.serving == 0 && !slices.ContainsFunc(classes, func(c *class) bool { return c.flow == f })
	})
}

// enter admits a request, as soon as there is room, or returns the reason why it is rejected. The
// wait ends with ctx or at a time.
func (l *level) enter(ctx context.Context, t *Turn, hash uint64, until time.Time) (reason string) {
	if reason = l.start(t, hash); reason != "" || t.dispatched == nil {
		return reason
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-t.dispatched:
	case <-ctx.Done():
	case <-timer.C:
	}
	return l.giveUp(t)
}

// Reasons of rejections.
const (
	overLimit = "concurrency-limit"
	queueFull = "queue-full"
	timedOut  = "time-out"
)

// start dispatches a request, puts it into a queue, or rejects it.
func (l *level) start(t *Turn, hash uint64) (reason string) {
	now := l.lock()
	defer l.mu.Unlock()
	t.level, t.arrived, t.arrival = l, now, l.progress
	t.final = effortOf(float64(t.work.Final), t.work.After)
	t.effort = effortOf(float64(t.work.Initial), presumedDuration) + t.final
	t.flow.estimated.observe(seatBounds, float64(t.work.seats()))
	if t.work.writes {
		t.flow.watchers.observe(watcherBounds, float64(t.work.watchers))
	}
	if l.queuing.queues < 1 {
		if !l.hasRoom(t.work.seats()) {
			return l.reject(t, now, overLimit)
		}
		l.serve(t, now)
		l.unqueued.add(t)
		return ""
	}
	q := l.choose(hash)
	if l.seats >= l.limit && q.waiting.n >= l.queuing.length {
		q.bound()
		return l.reject(t, now, queueFull)
	}
	l.enqueue(t, q, now)
	t.flow.lengths.observe(lengthBounds, float64(q.waiting.n))
	l.dispatch(now)
	if t.state == isWaiting {
		t.dispatched = make(chan struct{})
	}
	return ""
}

// choose returns the queue with the least waiting work in the hand of a flow. Hands are looked
// through from different positions, so that queues common to several of them are not preferred.
func (l *level) choose(hash uint64) *queue {
	var hand [mostCards]int
	cards := deal(hand[:l.queuing.hand], hash, l.queuing.queues)
	var best *queue
	for i := range cards {
		q := l.queues[cards[(l.dealt+i)%len(cards)]]
		if best == nil || q.waits.work < best.waits.work {
			best = q
		}
	}
	l.dealt++
	return best
}

func (l *level) enqueue(t *Turn, q *queue, now time.Time) {
	if !q.busy() {
		q.next = l.progress
		l.active++
	}
	t.queue, t.state = q, isWaiting
	q.waiting.add(t)
	seats := t.work.seats()
	q.waits.initial += t.work.Initial
	q.waits.most += seats
	q.waits.work += t.effort
	l.waiting++
	l.waitSeats += seats
	l.queueSeats += seats
	l.latest = q
	t.flow.waiting++
	t.flow.waitSeats += seats
	l.waitRatio.set(now, l.waiting)
	l.note(now)
	q.bound()
}

// dequeue takes a request out of its queue. The queue may be idle afterwards.
func (l *level) dequeue(t *Turn, now time.Time) {
	q, seats := t.queue, t.work.seats()
	q.waiting.remove(t)
	t.state = isIdle
	q.waits.initial -= t.work.Initial
	q.waits.most -= seats
	q.waits.work -= t.effort
	l.waiting--
	l.waitSeats -= seats
	l.queueSeats -= seats
	t.flow.waiting--
	t.flow.waitSeats -= seats
	l.waitRatio.set(now, l.waiting)
}

// bound ensures that no request is dispatched before its arrival, in virtual time. A queue that
// rarely uses its share must not save it up.
func (q *queue) bound() {
	if t := q.waiting.first; t != nil && q.next-t.arrival < 0 {
		q.next = t.arrival
	}
}

// dispatch serves the waiting requests for which there is room.
func (l *level) dispatch(now time.Time) {
	for l.waiting > 0 && l.seats < l.limit {
		q := l.latest
		if l.waiting > q.waiting.n {
			q = l.earliest()
		}
		t := q.waiting.first
		if !l.hasRoom(t.work.seats()) {
			t.flow.noRoom++
			return
		}
		l.last = q.index
		l.dequeue(t, now)
		if t.work.Final > l.limit {
			t.work.Final, t.work.After = l.limit, t.final.per(l.limit)
		}
		l.atDispatch.progress, l.atDispatch.start = l.progress, q.next
		l.serve(t, now)
		q.serving.add(t)
		q.seats += t.work.seats()
		l.queueSeats += t.work.seats()
		q.next += t.effort
		q.bound()
		if t.dispatched != nil {
			close(t.dispatched)
		}
	}
}

// hasRoom reports whether a request for some seats can be served. A request for more than the limit
// is served alone.
func (l *level) hasRoom(seats int) bool {
	if l.exempt {
		return true
	}
	if seats > l.limit {
		return l.serving == 0
	}
	return l.seats+seats <= l.limit
}

// earliest returns the queue whose oldest request would finish first, in virtual time. With equal
// times, queues take turns.
func (l *level) earliest() *queue {
	var best *queue
	var finish effort
	at := l.last
	for range l.queues {
		if at++; at >= len(l.queues) {
			at = 0
		}
		q := l.queues[at]
		t := q.waiting.first
		if t == nil {
			continue
		}
		if f := q.next + t.effort; best == nil || f-finish < 0 {
			best, finish = q, f
		}
	}
	return best
}

// serve counts a request as being served.
func (l *level) serve(t *Turn, now time.Time) {
	t.state, t.started = isServing, now
	l.serving++
	l.dispatched++
	l.seats += t.work.seats()
	t.flow.serve(t, now)
	l.servedRatio.set(now, l.serving)
	l.seatRatio.set(now, l.seats)
	l.note(now)
}

// note follows the demand for seats.
func (l *level) note(now time.Time) {
	seats := l.seats + l.waitSeats
	l.demand.set(now, seats)
	l.demandRatio.set(now, seats)
}

func (l *level) reject(t *Turn, now time.Time, reason string) string {
	l.rejected++
	t.retryAfter = l.drops.add(now)
	t.flow.reject(t, now, reason)
	return reason
}

// giveUp rejects a request whose wait has ended, unless it has just been dispatched.
func (l *level) giveUp(t *Turn) (reason string) {
	now := l.lock()
	defer l.unlock()
	if t.state != isWaiting {
		return ""
	}
	q := t.queue
	l.dequeue(t, now)
	l.calm(q)
	l.note(now)
	q.bound()
	l.cancelled++
	return l.reject(t, now, timedOut)
}

// calm counts a queue as idle if it has no requests any more.
func (l *level) calm(q *queue) {
	if !q.busy() {
		l.active--
	}
}

// Release ends the time in which the request uses seats. It may be called repeatedly.
func (t *Turn) Release() {
	l := t.level
	if l == nil {
		return
	}
	now := l.lock()
	defer l.unlock()
	if t.state != isServing {
		return
	}
	t.state = isIdle
	l.serving--
	t.flow.end(t, now)
	l.servedRatio.set(now, l.serving)
	q := t.queue
	if q != nil {
		q.serving.remove(t)
		q.next -= effortOf(float64(t.work.Initial), presumedDuration-now.Sub(t.started))
		q.bound()
		l.calm(q)
	} else {
		l.unqueued.remove(t)
	}
	seats, f := t.work.seats(), t.flow
	if t.work.After > 0 {
		// The events of a write keep the server busy after the answer.
		time.AfterFunc(t.work.After, func() {
			now := l.lock()
			defer l.mu.Unlock()
			l.vacate(f, q, seats, now)
			l.dispatch(now)
		})
	} else {
		l.vacate(f, q, seats, now)
	}
	l.dispatch(now)
}

// End is called when the request has ended.
func (t *Turn) End() {
	if t.end != nil {
		t.end()
	}
}

// vacate frees the seats of a request.
func (l *level) vacate(f *flow, q *queue, seats int, now time.Time) {
	l.seats -= seats
	f.seats -= seats
	l.seatRatio.set(now, l.seats)
	l.note(now)
	if q == nil {
		return
	}
	q.seats -= seats
	if q.removed {
		return
	}
	l.queueSeats -= seats
	if len(l.queues) > l.queuing.queues && !q.busy() {
		l.remove(q)
	}
}

// remove removes a queue, of which there are too many.
func (l *level) remove(gone *queue) {
	l.queues = slices.Delete(l.queues, gone.index, gone.index+1)
	for i, q := range l.queues[gone.index:] {
		q.index = gone.index + i
	}
	if l.last >= gone.index {
		l.last--
	}
	gone.removed = true
	l.queueSeats -= gone.seats
}

// idle reports whether the level has no requests.
func (l *level) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting == 0 && l.serving == 0
}

// each calls visit for each request with the index of its queue, or -1. Requests that wait come
// first. It needs the lock.
func (l *level) each(visit func(queue int, t *Turn)) {
	of := func(queue int, x *list) {
		for t := x.first; t != nil; t = t.after {
			visit(queue, t)
		}
	}
	for i, q := range l.queues {
		of(i, &q.waiting)
		of(i, &q.serving)
	}
	of(-1, &l.unqueued)
}
