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
	// gatherFrom is the number of watches from which output is buffered.
	gatherFrom = 2
	// maxGathered limits the bytes of one system call, and the bytes that are buffered meanwhile.
	maxGathered = 128 << 10
	// parting limits the time for sending the rest when a connection closes.
	parting = 5 * time.Second
)

// An output is a connection with a send buffer.
//
// Output is sent at once unless the connection has several watches. An event often goes to many
// of them: each writes little, all at about the same time, and a system call for each costs more
// than the encryption. So output is buffered until all runnable writers have written.
//
// A deadline applies to a waiting caller; buffered output is still sent. TLS serializes the
// writers.
type output struct {
	net.Conn
	all     *outputs
	watches atomic.Int32

	mu       sync.Mutex
	changed  *sync.Cond
	gathered []byte
	sending  bool // flush runs
	waiting  bool // a writer waits
	closing  bool // once all is sent
	deadline time.Time
	err      error // of sending; permanent
}

// outputs has the state that all connections of a server share.
type outputs struct {
	sending sync.WaitGroup
	buffers sync.Pool // of *[maxGathered]byte, while sending
	answers sync.Pool // of *[maxAnswer]byte, for held back heads
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

// gather buffers as many bytes as fit.
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

// wait waits for a change of state or for the deadline.
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

// flush sends until the buffer is empty.
func (o *output) flush() {
	runtime.Gosched() // let all runnable writers write first
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

// Close closes the connection once the buffer is sent. Reading ends immediately.
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
