package conn

import (
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// gatherFrom is how many watches a connection has whose output is gathered.
	gatherFrom = 2
	// maxGathered is how much is given to the system in one call, and how much
	// more of it a connection may hold meanwhile.
	maxGathered = 128 << 10
	// parting is how long a client has to take what it was sent when its
	// connection is closed.
	parting = 5 * time.Second
)

// An output is a connection that sends.
//
// What is written is given to the system at once, unless there are several watches.
// What happens then happens to many of them: each has a little to say, all at about
// the same time, and a call of the system for each takes longer than encrypting what
// they say. So it is gathered until all who are ready have written.
//
// A deadline is that of a caller who waits: what was taken from a caller is not given
// up because of it. Only one writes at a time, which TLS sees to.
type output struct {
	net.Conn
	all     *outputs
	watches atomic.Int32

	mu       sync.Mutex
	changed  *sync.Cond
	gathered []byte
	sending  bool // flush runs
	waiting  bool // a writer does
	closing  bool // when all is sent
	deadline time.Time
	err      error // of sending, for good
}

// outputs are those of a server.
type outputs struct {
	sending sync.WaitGroup
	buffers sync.Pool // of *[maxGathered]byte, for those that are sending
	answers sync.Pool // of *[maxAnswer]byte, for heads that wait
	late    late
}

func newOutput(c net.Conn, all *outputs) *output {
	o := &output{Conn: c, all: all}
	o.changed = sync.NewCond(&o.mu)
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	if !o.sending && o.err == nil && o.watches.Load() < gatherFrom {
		o.mu.Unlock()
		return o.Conn.Write(p)
	}
	defer o.mu.Unlock()
	for n := 0; ; o.wait() {
		switch {
		case o.err != nil:
			return n, o.err
		case o.closing:
			return n, net.ErrClosed
		case !o.deadline.IsZero() && !time.Now().Before(o.deadline):
			return n, os.ErrDeadlineExceeded
		}
		if n += o.gather(p[n:]); n == len(p) {
			return n, nil
		}
	}
}

// gather takes as many bytes as there is room for.
func (o *output) gather(p []byte) int {
	n := min(len(p), maxGathered-len(o.gathered))
	if n == 0 {
		return 0
	}
	if o.gathered == nil {
		o.gathered = o.all.take()
	}
	o.gathered = append(o.gathered, p[:n]...)
	if !o.sending {
		o.sending = true
		if !o.deadline.IsZero() {
			_ = o.Conn.SetWriteDeadline(time.Time{})
		}
		o.all.sending.Go(o.flush)
	}
	return n
}

// wait waits until something changes, or the deadline ends sending.
func (o *output) wait() {
	o.waiting = true
	if !o.deadline.IsZero() && !o.closing {
		_ = o.Conn.SetWriteDeadline(o.deadline)
	}
	o.changed.Wait()
	o.waiting = false
	if o.sending && !o.closing {
		_ = o.Conn.SetWriteDeadline(time.Time{})
	}
}

// flush sends until there is nothing left.
func (o *output) flush() {
	runtime.Gosched() // all who are ready write first
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.gathered) > 0 && o.err == nil {
		data := o.gathered
		o.gathered = nil
		o.changed.Broadcast()
		o.mu.Unlock()
		_, err := o.Conn.Write(data)
		o.all.give(data)
		o.mu.Lock()
		o.err = err
	}
	if o.gathered != nil {
		o.all.give(o.gathered)
		o.gathered = nil
	}
	o.sending = false
	o.changed.Broadcast()
	if o.closing {
		_ = o.Conn.Close()
	} else if !o.deadline.IsZero() {
		_ = o.Conn.SetWriteDeadline(o.deadline)
	}
}

func (a *outputs) take() []byte {
	if space, ok := a.buffers.Get().(*[maxGathered]byte); ok {
		return space[:0]
	}
	return new([maxGathered]byte)[:0]
}

func (a *outputs) give(buffer []byte) { a.buffers.Put((*[maxGathered]byte)(buffer[:maxGathered])) }

// Close closes the connection when what was written is sent. Reading ends now.
func (o *output) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return net.ErrClosed
	}
	if o.closing = true; !o.sending {
		return o.Conn.Close()
	}
	o.changed.Broadcast()
	_ = o.SetReadDeadline(time.Unix(1, 0))
	return o.Conn.SetWriteDeadline(time.Now().Add(parting))
}

func (o *output) SetWriteDeadline(t time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.deadline = t
	if o.closing || o.sending && !o.waiting {
		return nil
	}
	return o.Conn.SetWriteDeadline(t)
}

func (o *output) SetDeadline(t time.Time) error {
	if err := o.SetReadDeadline(t); err != nil {
		return err
	}
	return o.SetWriteDeadline(t)
}
