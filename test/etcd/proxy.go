package etcd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A Proxy forwards connections to an address, and can inject faults.
type Proxy struct {
	listener net.Listener
	target   string

	mu     sync.Mutex
	closed bool
	cut    func(from string) trouble
	heal   chan struct{} // closed at the end of the fault
	links  map[*link]bool

	came atomic.Int64 // bytes from the target
}

// trouble is a fault of a Proxy.
type trouble int

const (
	none   trouble = iota
	broken         // connections break, and no new ones open
	silent         // connections stay open without data
)

// A link is one connection through a Proxy.
type link struct {
	in, out net.Conn
	from    string // the etcd member at the other end, if known
}

func (l *link) close() {
	l.in.Close()
	l.out.Close()
}

// NewProxy returns a proxy for an address, which stops at the end of the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target, links: map[*link]bool{}, cut: func(string) trouble { return none }, heal: make(chan struct{})}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { p.serve(in) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		p.closed = true
		for l := range p.links {
			l.close()
		}
		p.mu.Unlock()
		p.Heal()
		serving.Wait()
	})
	return p
}

// Address is host:port of the proxy.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// open returns the number of connections.
func (p *Proxy) open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Cut applies a fault to all connections.
func (p *Proxy) Cut(what trouble) { p.CutFrom(func(string) trouble { return what }) }

// CutFrom applies a fault to some connections.
func (p *Proxy) CutFrom(cut func(from string) trouble) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	for l := range p.links {
		if cut(l.from) == broken {
			l.close()
		}
	}
}

// Heal ends all faults.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = func(string) trouble { return none }
	close(p.heal)
	p.heal = make(chan struct{})
}

// pass waits until a link may transfer data. It returns false if that will never be.
func (p *Proxy) pass(l *link) bool {
	for {
		p.mu.Lock()
		what, heal, closed := p.cut(l.from), p.heal, p.closed
		p.mu.Unlock()
		switch {
		case closed || what == broken:
			return false
		case what == none:
			return true
		}
		<-heal
	}
}

// A counter counts the bytes written to it.
type counter struct{ *atomic.Int64 }

func (c counter) Write(data []byte) (int, error) {
	c.Add(int64(len(data)))
	return len(data), nil
}

// drained returns the number of bytes from the target, once no more arrive.
func (p *Proxy) drained(ctx context.Context) int64 {
	for was := int64(-1); ; {
		now := p.came.Load()
		if now == was || ctx.Err() != nil {
			return now
		}
		was = now
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

var errCut = errors.New("cut")

func (p *Proxy) serve(in net.Conn) {
	l := &link{in: in}
	first := make([]byte, 4<<10)
	n, err := in.Read(first)
	l.from = origin(first[:n])
	if err == nil && p.pass(l) {
		l.out, err = net.Dial("tcp", p.target)
	} else {
		err = errCut
	}
	if err != nil {
		in.Close()
		return
	}
	p.mu.Lock()
	p.links[l] = true
	if p.closed {
		l.close()
	}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(l, l.out, io.MultiReader(bytes.NewReader(first[:n]), in)) })
	both.Go(func() { p.copy(l, in, io.TeeReader(l.out, counter{&p.came})) })
	both.Wait()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

func (p *Proxy) copy(l *link, to io.Writer, from io.Reader) {
	defer l.close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !p.pass(l) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// origin returns the id of the etcd member that sent a request to another, from its header.
func origin(request []byte) string {
	for line := range bytes.SplitSeq(request, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(": "))
		if bytes.EqualFold(name, []byte("X-Server-From")) {
			return string(value)
		}
	}
	return ""
}
