package server

import (
	"net/http"
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

// A pairing is an output that sends the head of an answer together with its body.
//
// net/http sends the head alone, and the body right after it. Where both are due, the
// head waits for the next write, whatever that is. None may come, for the client may
// not take a body now: then the head goes alone a moment later.
type pairing struct {
	*output
	one chan struct{} // has room for who gives something to the output

	mu   sync.Mutex
	due  time.Time // until then an answer is expected
	head []byte    // that waits
	late *time.Timer
}

func newPairing(o *output) *pairing { return &pairing{output: o, one: make(chan struct{}, 1)} }

// expect says that an answer is about to be sent.
func (p *pairing) expect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due = time.Now().Add(headWait)
}

func (p *pairing) Write(data []byte) (int, error) {
	p.one <- struct{}{}
	defer func() { <-p.one }()
	p.mu.Lock()
	head := p.head
	if head == nil && len(data) <= maxHead && !p.due.IsZero() && time.Now().Before(p.due) {
		p.due = time.Time{}
		p.head = append(p.all.takeAnswer(), data...)
		if p.late == nil {
			p.late = time.AfterFunc(headWait, p.release)
		} else {
			p.late.Reset(headWait)
		}
		p.mu.Unlock()
		return len(data), nil
	}
	p.head = nil
	p.mu.Unlock()
	if head == nil {
		return p.output.Write(data)
	}
	p.late.Stop()
	defer p.all.giveAnswer(head)
	n := len(head)
	written, err := p.output.Write(append(head, data...))
	return max(0, written-n), err
}

func (a *outputs) takeAnswer() []byte {
	if space, ok := a.answers.Get().(*[maxAnswer]byte); ok {
		return space[:0]
	}
	return new([maxAnswer]byte)[:0]
}

func (a *outputs) giveAnswer(buffer []byte) {
	a.answers.Put((*[maxAnswer]byte)(buffer[:maxAnswer]))
}

// release sends a head that waits.
func (p *pairing) release() {
	p.one <- struct{}{}
	defer func() { <-p.one }()
	p.mu.Lock()
	head := p.head
	p.head = nil
	p.mu.Unlock()
	if head != nil {
		_, _ = p.output.Write(head) // an error comes again with the next write
		p.all.giveAnswer(head)
	}
}

// answering expects the answer of a request whose handler is about to return, if all
// of it is still to be sent.
func (x *exchange) answering(r *http.Request) {
	if r.ProtoMajor < 2 || x.flushed || x.size == 0 || x.size > maxBody || r.Method == http.MethodHead {
		return
	}
	if p, ok := r.Context().Value(outputKey{}).(*pairing); ok {
		p.expect()
	}
}
