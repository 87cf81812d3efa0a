package rest

import (
	"cmp"
	"container/heap"
	"math/bits"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// turns limits the number of long answers that are rendered at a time. Without the limit all of them
// would progress together: small requests would wait for the processor behind them, and for a seat
// until they end, all at about the same moment.
//
// An answer that has taken less time has precedence, then the older one. Answers of about the same
// length thus end one after another, and a short one does not wait until a long one ends.
//
// There are as many turns as processors, one less while there are other requests. Meanwhile a write to the client belongs to
// the turn, since it takes as much of the processor as the rendering. A client that reads slowly loses its turn.
type turns struct {
	others atomic.Int64 // time of the last other request

	mu      sync.Mutex
	most    int
	taken   int
	begun   uint64
	waiting waiting
	polled  time.Time   // with one processor: the time of the last poll
	lent    []*turn     // that write
	late    *time.Timer // calls reclaim while some write and others wait
}

// writeQuantum is the time after which a write loses the turn.
const writeQuantum = time.Millisecond

// othersLast is the time for which a request reserves a processor for others.
const othersLast = 100 * time.Millisecond

func newTurns() *turns { return &turns{most: runtime.GOMAXPROCS(0)} }

// other is called for a request that is no list.
func (t *turns) other() { t.others.Store(time.Now().UnixNano()) }

// shared reports whether there are other requests.
func (t *turns) shared() bool { return time.Now().UnixNano()-t.others.Load() < int64(othersLast) }

// full reports whether all turns are taken.
func (t *turns) full() bool {
	most := t.most
	if most > 1 && t.shared() {
		most--
	}
	return t.taken >= most
}

// With one processor, the scheduler polls the network only if no goroutine can run, or every 10 ms. Lists pause for pollPause
// every pollQuantum for it.
const (
	pollQuantum = time.Millisecond
	pollPause   = 10 * time.Microsecond
)

// A turn is the right of one answer to render. take, give and yield may be called with nil, and then do nothing.
type turn struct {
	of      *turns
	number  uint64
	granted chan struct{} // nil until the first wait
	held    bool          // a write may have lost it
	slow    bool          // the last write took long
	taken   time.Time
	lent    time.Time
	spent   time.Duration
	level   int
}

// turnQuantum is the time that an answer takes before others have precedence. It doubles each time.
const turnQuantum = 10 * time.Millisecond

// next returns the turn of the next answer.
func (t *turns) next() turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun++
	return turn{of: t, number: t.begun}
}

// take waits until the answer may be rendered.
func (t *turn) take() {
	if t == nil {
		return
	}
	t.of.mu.Lock()
	if t.of.full() {
		if t.granted == nil {
			t.granted = make(chan struct{}, 1)
		}
		heap.Push(&t.of.waiting, t)
		t.of.watch()
		t.of.mu.Unlock()
		<-t.granted
	} else {
		t.of.taken++
		t.of.mu.Unlock()
	}
	t.taken, t.held = time.Now(), true
}

// give lets others render.
func (t *turn) give() {
	if t == nil {
		return
	}
	t.held = false
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.end(time.Now())
	t.of.grant()
}

// end counts the time of the turn. The caller holds the lock.
func (t *turn) end(now time.Time) {
	t.spent += now.Sub(t.taken)
	t.level = bits.Len64(uint64(t.spent / turnQuantum))
	t.of.taken--
}

// grant gives free turns to those that wait. The caller holds the lock.
func (t *turns) grant() {
	for len(t.waiting) > 0 && !t.full() {
		t.taken++
		heap.Pop(&t.waiting).(*turn).granted <- struct{}{}
	}
}

// lend precedes a write to the client. The caller has the turn, and must call back after the write.
func (t *turn) lend() {
	t.lent = time.Now()
	if t.slow || !t.of.shared() {
		t.give()
		return
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.lent = append(t.of.lent, t)
	t.of.watch()
}

// back takes the turn after a write.
func (t *turn) back() {
	t.slow = time.Since(t.lent) >= writeQuantum
	if t.of.returned(t) {
		t.yield()
	} else {
		t.take()
	}
	switch {
	case !t.of.shared():
	case t.of.polls():
		time.Sleep(pollPause)
	default:
		runtime.Gosched()
	}
}

// returned ends the write of a turn, unless the turn was given away or lost.
func (t *turns) returned(one *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.lent, one)
	if i < 0 {
		return false
	}
	t.lent = slices.Delete(t.lent, i, i+1)
	return true
}

// polls reports whether it is time to let the scheduler poll the network.
func (t *turns) polls() bool {
	if t.most > 1 {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	due := now.Sub(t.polled) >= pollQuantum
	if due {
		t.polled = now
	}
	return due
}

// watch starts the timer if a write may lose its turn. The caller holds the lock.
func (t *turns) watch() {
	if len(t.lent) == 0 || len(t.waiting) == 0 {
		return
	}
	wait := writeQuantum - time.Since(t.lent[0].lent)
	if t.late == nil {
		t.late = time.AfterFunc(wait, t.reclaim)
		return
	}
	t.late.Reset(wait)
}

// reclaim takes the turns of writes that take long.
func (t *turns) reclaim() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for len(t.lent) > 0 && len(t.waiting) > 0 && now.Sub(t.lent[0].lent) >= writeQuantum {
		t.lent[0].end(now)
		t.lent = slices.Delete(t.lent, 0, 1)
		t.grant()
	}
	t.watch()
}

// yield lets answers with precedence render.
func (t *turn) yield() {
	if t != nil && time.Since(t.taken) >= turnQuantum {
		t.give()
		t.take()
	}
}

// waiting is a heap of turns.
type waiting []*turn

func (w waiting) Len() int { return len(w) }
func (w waiting) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(w[i].level, w[j].level), cmp.Compare(w[i].number, w[j].number)) < 0
}
func (w waiting) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *waiting) Push(t any)   { *w = append(*w, t.(*turn)) }
func (w *waiting) Pop() any {
	last := len(*w) - 1
	t := (*w)[last]
	(*w)[last] = nil
	*w = (*w)[:last]
	return t
}

// A paced call is the writer of a list.
type paced call

func (p *paced) Header() http.Header  { return p.unpaced.Header() }
func (p *paced) WriteHeader(code int) { p.unpaced.WriteHeader(code) }

// Unwrap is for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.unpaced }

func (p *paced) Write(data []byte) (int, error) {
	if p.turn.held {
		p.turn.lend()
		defer p.turn.back()
	}
	return p.unpaced.Write(data)
}

// inTurn waits for the turn of a list. The caller must give it away at the end. A list of objects that a
// webhook converts has no turn: it may wait for the webhook, and the webhook may list objects.
func (h *Handler) inTurn(r *call) *turn {
	if r.target.Definition.ConversionClock != nil {
		return nil
	}
	r.turn = h.turns.next()
	to := &r.w
	if c, ok := r.w.(*compressor); ok {
		c.turn, to = &r.turn, &c.ResponseWriter
	}
	r.unpaced, *to = *to, (*paced)(r)
	r.turn.take()
	return &r.turn
}
