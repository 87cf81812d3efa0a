package conn

import (
	"sync"
	"time"
)

const (
	// maxHead limits the head of an answer that is held back.
	maxHead = 512
	// maxBody is the longest body that net/http sends when its handler has returned
	// (TestWritesAfterHandler).
	maxBody = 4 << 10
	// maxAnswer is the limit for both, with the overhead of TLS.
	maxAnswer = maxHead + maxBody + 512
	// headWait is the minimal time that a head waits for its body.
	headWait = time.Millisecond
	// lateLook is the interval between two checks for overdue heads.
	lateLook = 10 * time.Millisecond
)

// answers is an output that sends the head of an answer together with its body.
//
// Over HTTP/2, net/http writes the head, then the body (TestWritesOfHTTP2). If both are expected,
// the head waits for the next write of any kind. There may be none, because flow control may
// block the body: then late sends the head alone.
type answers struct {
	*output
	one chan struct{} // a lock for writers to the output

	mu    sync.Mutex
	due   time.Time // an answer is expected until then
	head  []byte    // held back
	since time.Time // start of the wait
	known bool      // registered with late
}

func newAnswers(o *output) *answers { return &answers{output: o, one: make(chan struct{}, 1)} }

// inMemory reports whether the connection says so, with a method InMemory.
func (a *answers) inMemory() bool {
	_, ok := a.Conn.(interface{ InMemory() })
	return ok
}

// expect announces an answer.
func (a *answers) expect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.due = time.Now().Add(headWait)
}

func (a *answers) Write(data []byte) (int, error) {
	a.one <- struct{}{}
	defer func() { <-a.one }()
	a.mu.Lock()
	head := a.head
	if head == nil && len(data) <= maxHead && !a.due.IsZero() && time.Now().Before(a.due) {
		a.head, a.since = append(a.all.takeAnswer(), data...), a.due.Add(-headWait)
		a.due = time.Time{}
		if !a.known {
			a.known = true
			a.all.late.add(a)
		}
		a.mu.Unlock()
		return len(data), nil
	}
	a.head = nil
	a.mu.Unlock()
	if head == nil {
		return a.output.Write(data)
	}
	defer a.all.giveAnswer(head)
	n := len(head)
	written, err := a.output.Write(append(head, data...))
	return max(0, written-n), err
}

func (o *outputs) takeAnswer() []byte {
	if space, ok := o.answers.Get().(*[maxAnswer]byte); ok {
		return space[:0]
	}
	return new([maxAnswer]byte)[:0]
}

func (o *outputs) giveAnswer(buffer []byte) {
	o.answers.Put((*[maxAnswer]byte)(buffer[:maxAnswer]))
}

// late sends heads that have waited long enough. One timer checks all connections. A timer for
// each answer, stopped a moment later, would wake the thread of the network poller each time.
type late struct {
	mu    sync.Mutex
	some  []*answers // had a head at the last check
	timer *time.Timer
}

// add registers a for the next check.
func (l *late) add(a *answers) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.some = append(l.some, a)
	switch {
	case l.timer == nil:
		l.timer = time.AfterFunc(lateLook, l.look)
	case len(l.some) == 1:
		l.timer.Reset(lateLook)
	}
}

func (l *late) look() {
	l.mu.Lock()
	some := l.some
	l.some = nil
	l.mu.Unlock()
	for _, a := range some {
		if a.overdue() {
			go a.release() // it waits for writers
		}
	}
}

// overdue reports whether a head has waited long enough. If not, it is checked again.
func (a *answers) overdue() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known = a.head != nil && time.Since(a.since) < headWait; a.known {
		a.all.late.add(a)
	}
	return a.head != nil && !a.known
}

// release sends the head that was held back.
func (a *answers) release() {
	a.one <- struct{}{}
	defer func() { <-a.one }()
	a.mu.Lock()
	head := a.head
	a.head = nil
	a.mu.Unlock()
	if head != nil {
		_, _ = a.output.Write(head) // the next write reports the error again
		a.all.giveAnswer(head)
	}
}
