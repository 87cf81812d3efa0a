package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// farewell is how long a client on this machine has to read that it should go,
// before a connection that it does not use is closed. net/http gives every
// HTTP/2 client a second, which in a test is an age.
const farewell = 5 * time.Millisecond

// Draining is closed when Drain has begun.
func (s *Server) Draining() <-chan struct{} { return s.draining.Done() }

// Drain stops the Server without cutting anybody short: from now on it is not
// ready and takes no connection; watches end; clients are told to go; requests
// under way are answered. When ctx ends before that, the connections that are
// left are closed and the error says so.
func (s *Server) Drain(ctx context.Context) error {
	s.drain()
	var group sync.WaitGroup
	ended := make(chan struct{})
	group.Go(func() { s.connections.closeUnused(ended) })
	err := s.http.Shutdown(ctx)
	close(ended)
	group.Wait()
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.outputs.sending.Wait()
	return err
}

// connections are those that are open.
type connections struct {
	mu   sync.Mutex
	open map[*connection]bool
}

// A connection remembers what net/http says of it.
type connection struct {
	*pairing
	state atomic.Int32 // an http.ConnState
}

// tracked is a listener whose connections are connections.
type tracked struct {
	net.Listener
	outputs *outputs
}

func (l tracked) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &connection{pairing: newPairing(newOutput(c, l.outputs))}, nil
}

// note is the http.Server's ConnState.
func (cs *connections) note(outer net.Conn, state http.ConnState) {
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

// closeUnused closes the connections of this machine that have no request, those
// that never had one, and those that have none any more, until ended.
func (cs *connections) closeUnused(ended <-chan struct{}) {
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

// local reports whether the client is on this machine.
func (c *connection) local() bool {
	address, ok := c.RemoteAddr().(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}
