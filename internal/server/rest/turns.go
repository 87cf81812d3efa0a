package rest

import (
	"cmp"
	"container/heap"
	"math/bits"
	"net/http"
	"runtime"
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
// There are as many turns as processors, one less while there are other requests.
type turns struct {
	others atomic.Int64 // time of the last other request

	mu      sync.Mutex
	most    int
	taken   int
	begun   uint64
	waiting waiting
}

// othersLast is the time for which a request reserves a processor for others.
const othersLast = 100 * time.Millisecond

func newTurns() *turns { return &turns{most: runtime.GOMAXPROCS(0)} }

// other is called for a request that is no list.
func (t *turns) other() { t.others.Store(time.Now().UnixNano()) }

// full reports whether all turns are taken.
func (t *turns) full() bool {
	most := t.most
	if most > 1 && time.Now().UnixNano()-t.others.Load() < int64(othersLast) {
		most--
	}
	return t.taken >= most
}

// A turn is that of one answer. Its methods may be called with nil, and then do nothing.
type turn struct {
	of      *turns
	number  uint64
	granted chan struct{} // nil until the first wait
	taken   time.Time
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
		t.of.mu.Unlock()
		<-t.granted
	} else {
		t.of.taken++
		t.of.mu.Unlock()
	}
	t.taken = time.Now()
}

// give lets others render, while the client reads and at the end.
func (t *turn) give() {
	if t == nil {
		return
	}
	t.spent += time.Since(t.taken)
	t.level = bits.Len64(uint64(t.spent / turnQuantum))
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.taken--
	for len(t.of.waiting) > 0 && !t.of.full() {
		t.of.taken++
		heap.Pop(&t.of.waiting).(*turn).granted <- struct{}{}
	}
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

// A paced call is the writer of a list. It gives the turn away during each write.
type paced call

func (p *paced) Header() http.Header  { return p.unpaced.Header() }
func (p *paced) WriteHeader(code int) { p.unpaced.WriteHeader(code) }

// Unwrap is for http.ResponseController.
func (p *paced) Unwrap() http.ResponseWriter { return p.unpaced }

func (p *paced) Write(data []byte) (int, error) {
	p.turn.give()
	defer p.turn.take()
	return p.unpaced.Write(data)
}

// inTurn waits for the turn of a list. The caller must give it away at the end. A list of objects that a
// webhook converts has no turn: it may wait for the webhook, and the webhook may list objects.
func (h *Handler) inTurn(r *call) *turn {
	if r.target.Definition.ConversionClock != nil {
		return nil
	}
	r.turn = h.turns.next()
	if c, ok := r.w.(*compressor); ok {
		c.turn = &r.turn
	}
	r.unpaced, r.w = r.w, (*paced)(r)
	r.turn.take()
	return &r.turn
}
