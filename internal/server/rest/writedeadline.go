package rest

import (
	"sync"
	"time"
)

// writeTimeout limits the time of a write of a watch. A watch whose client does not read ends;
// the client may reconnect.
const writeTimeout = time.Minute

// A writeDeadline ends writes that take too long.
//
// It sets no deadline for each write: an HTTP/2 deadline would end the stream even between two
// writes, and costs a message to the connection. Nor does it reset its timer for each write: the
// timer checks the deadline of the current write when it fires.
type writeDeadline struct {
	out interface{ SetWriteDeadline(time.Time) error }

	mu      sync.Mutex
	timer   *time.Timer
	running bool      // the timer
	until   time.Time // deadline of the current write
	writing bool
}

// begin is called before a write, and end after it.
func (p *writeDeadline) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing, p.until = true, time.Now().Add(writeTimeout)
	switch {
	case p.running:
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(writeTimeout, p.over)
	default:
		p.timer.Reset(writeTimeout)
	}
	p.running = true
}

func (p *writeDeadline) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = false
}

// stop is called after the last write.
func (p *writeDeadline) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *writeDeadline) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := time.Until(p.until)
	switch {
	case !p.writing:
		p.running = false
	case left > 0:
		p.timer.Reset(left)
	default:
		p.running = false
		_ = p.out.SetWriteDeadline(time.Unix(1, 0)) // a writer without deadlines, in a test, goes on
	}
}
