// Package conn handles the connections of a server.
//
// It buffers the output of several watches on one connection, sends the head of an answer
// together with its body, and closes idle connections when the server drains. It knows
// connections and whether they are busy. It does not know requests: the server reports the start
// of a watch and the end of a handler.
package conn

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// farewell is the time that a local client has to read GOAWAY before its idle connection closes.
// net/http gives every HTTP/2 client a second, which is long in a test.
const farewell = 5 * time.Millisecond

// Connections are the connections of one http.Server. The zero value has none.
type Connections struct {
	outputs outputs

	mu   sync.Mutex
	open map[*connection]bool
}

// A connection records the state that net/http reports.
type connection struct {
	*answers
	state atomic.Int32 // an http.ConnState
}

// Listener returns l with connections that cs tracks. The http.Server serves TLS on it, and has
// Context and Note as its ConnContext and ConnState.
func (cs *Connections) Listener(l net.Listener) net.Listener { return listener{l, &cs.outputs} }

type listener struct {
	net.Listener
	outputs *outputs
}

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{answers: newAnswers(newOutput(c, l.outputs))}, nil
}

// Wait returns once all output has been sent.
func (cs *Connections) Wait() { cs.outputs.sending.Wait() }

// answersKey is the key of the connection in the context of a request.
type answersKey struct{}

// Context is the http.Server's ConnContext.
func (cs *Connections) Context(ctx context.Context, outer net.Conn) context.Context {
	if c := connectionOf(outer); c != nil {
		return context.WithValue(ctx, answersKey{}, c.answers)
	}
	return ctx
}

// connectionOf returns the connection below TLS, or nil if it is not one of Listener.
func connectionOf(outer net.Conn) *connection {
	secure, ok := outer.(*tls.Conn)
	if !ok {
		return nil
	}
	c, _ := secure.NetConn().(*connection)
	return c
}

// BeginWatch marks the request of the context as a watch until end is called. The output of a
// connection with several watches is buffered.
func BeginWatch(ctx context.Context) (end func()) {
	a, ok := ctx.Value(answersKey{}).(*answers)
	if !ok {
		return func() {}
	}
	a.watches.Add(1)
	return func() { a.watches.Add(-1) }
}

// ExpectAnswer announces that the handler of the context's request is about to return and nothing
// of its answer has been sent yet. size is the length of the body. A connection in memory has no packets to save, and in a bubble of
// testing/synctest time may never pass for a head that waits.
func ExpectAnswer(ctx context.Context, size int64) {
	if size == 0 || size > maxBody {
		return
	}
	if a, ok := ctx.Value(answersKey{}).(*answers); ok && !a.inMemory() {
		a.expect()
	}
}

// Note is the http.Server's ConnState.
func (cs *Connections) Note(outer net.Conn, state http.ConnState) {
	c := connectionOf(outer)
	if c == nil {
		return
	}
	c.state.Store(int32(state))
	switch state {
	case http.StateNew:
		cs.mu.Lock()
		defer cs.mu.Unlock()
		if cs.open == nil {
			cs.open = map[*connection]bool{}
		}
		cs.open[c] = true
	case http.StateClosed, http.StateHijacked:
		cs.mu.Lock()
		defer cs.mu.Unlock()
		delete(cs.open, c)
	}
}

// CloseUnused closes local connections without a request, and others as they become idle, until
// ended is closed.
func (cs *Connections) CloseUnused(ended <-chan struct{}) {
	tick := time.NewTicker(farewell)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			cs.mu.Lock()
			for c := range cs.open {
				if c.unused() && c.local() {
					_ = c.Close()
				}
			}
			cs.mu.Unlock()
		}
	}
}

func (c *connection) unused() bool {
	state := http.ConnState(c.state.Load())
	return state == http.StateNew || state == http.StateIdle
}

// local reports whether the client is on the same machine.
func (c *connection) local() bool {
	address, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}
