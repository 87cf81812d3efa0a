package conn

import (
	"sync"
	"time"
)

const (
	// maxHead is the longest that is taken for the head of an answer.
	maxHead = 512
	// maxBody is the longest body that is sent when its handler has returned.
	maxBody = 4 << 10
	// maxAnswer is for both, with what TLS adds.
	maxAnswer = maxHead + maxBody + 512
	// headWait is how long a head waits for the body.
	headWait = time.Millisecond
)

// answers is an output that sends the head of an answer together with its body.
//
// net/http sends the head alone, and the body right after it. Where both are due, the
// head waits for the next write, whatever that is. None may come, for the client may
// not take a body now: then the head goes alone a moment later.
type answers struct {
	*output
	one chan struct{} // has room for who gives something to the output

	mu   sync.Mutex
	due  time.Time // until then an answer is expected
	head []byte    // that waits
	late *time.Timer
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
		a.due = time.Time{}
		a.head = append(a.all.takeAnswer(), data...)
		if a.late == nil {
			a.late = time.AfterFunc(headWait, a.release)
		} else {
			a.late.Reset(headWait)
		}
		a.mu.Unlock()
		return len(data), nil
	}
	a.head = nil
	a.mu.Unlock()
	if head == nil {
		return a.output.Write(data)
	}
	a.late.Stop()
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
