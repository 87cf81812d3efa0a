package conn

import (
	"sync"
	"time"
)

const (
	// maxHead is the longest that is taken for the head of an answer.
	maxHead = 512
	// maxBody is the longest body that net/http sends when its handler has returned
	// (TestWritesAfterHandler).
	maxBody = 4 << 10
	// maxAnswer is for both, with what TLS adds.
	maxAnswer = maxHead + maxBody + 512
	// headWait is how long a head waits for the body, at least.
	headWait = time.Millisecond
	// lateLook is how long it is between two looks for heads that have waited that long.
	lateLook = 10 * time.Millisecond
)

// answers is an output that sends the head of an answer together with its body.
//
// By HTTP/2, net/http sends the head alone, and the body right after it (TestWritesOfHTTP2).
// Where both are due, the head waits for the next write, whatever that is. None may come, for
// the client may not take a body now: then the head goes alone, see late.
type answers struct {
	*output
	one chan struct{} // has room for who gives something to the output

	mu    sync.Mutex
	due   time.Time // until then an answer is expected
	head  []byte    // that waits
	since time.Time // when it began to
	known bool      // to late
}

func newAnswers(o *output) *answers { return &answers{output: o, one: make(chan struct{}, 1)} }

// expect says that an answer is about to be sent.
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

// late looks for heads that have waited long enough. It does so from time to time for all
// connections together: a timer of its own for each answer, which is stopped a moment later, would
// wake the thread that waits for the network each time.
type late struct {
	mu    sync.Mutex
	some  []*answers // that had a head since the last look
	timer *time.Timer
}

// add has the next look include a.
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
			go a.release() // which waits for who writes
		}
	}
}

// overdue reports whether a head has waited long enough. One that has not is looked at again.
func (a *answers) overdue() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known = a.head != nil && time.Since(a.since) < headWait; a.known {
		a.all.late.add(a)
	}
	return a.head != nil && !a.known
}

// release sends a head that waits.
func (a *answers) release() {
	a.one <- struct{}{}
	defer func() { <-a.one }()
	a.mu.Lock()
	head := a.head
	a.head = nil
	a.mu.Unlock()
	if head != nil {
		_, _ = a.output.Write(head) // an error comes again with the next write
		a.all.giveAnswer(head)
	}
}
