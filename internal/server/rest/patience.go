package rest

import (
	"sync"
	"time"
)

// writePatience is how long a watch waits for its client to take what was
// written. One that does not is ended, and may come back.
const writePatience = time.Minute

// A patience ends writes that take too long.
//
// It does not set a deadline for each: that would end an HTTP/2 stream also when
// it passes between two writes, and costs a message to the connection. Nor does it
// set its timer for each: what is due is looked at when the timer ends.
type patience struct {
	out interface{ SetWriteDeadline(time.Time) error }

	mu      sync.Mutex
	timer   *time.Timer
	running bool      // the timer
	until   time.Time // of the write under way
	writing bool
}

// begin is called before a write, and end after it.
func (p *patience) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing, p.until = true, time.Now().Add(writePatience)
	switch {
	case p.running:
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(writePatience, p.over)
	default:
		p.timer.Reset(writePatience)
	}
	p.running = true
}

func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writing = false
}

// stop is called after the last write.
func (p *patience) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer != nil {
		p.timer.Stop()
	}
}

func (p *patience) over() {
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
		_ = p.out.SetWriteDeadline(time.Unix(1, 0)) // without deadlines, in a test, it goes on
	}
}
