package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A counted connection counts the calls of Write.
type counted struct {
	net.Conn
	pieces []string
}

func (c *counted) Write(p []byte) (int, error) {
	c.pieces = append(c.pieces, string(p))
	return c.Conn.Write(p)
}

// Every watch of a shared connection gets all its events in order.
func TestWatchesOfOneConnection(t *testing.T) {
	const watches, events = 20, 300
	measured(t, func(b *bench) {
		b.api = func(w http.ResponseWriter, r *http.Request) {
			for i := range events {
				if i%10 == 0 {
					time.Sleep(time.Second)
				}
				fmt.Fprintf(w, "%s %d %s\n", r.URL.Path, i, strings.Repeat("x", i*10))
				_ = http.NewResponseController(w).Flush()
			}
		}
		c := b.client(2)
		first, err := b.ask(c, "GET", "/healthz", nil) // opens the connection
		if err != nil {
			b.Fatal(err)
		}
		first.Body.Close()
		var group sync.WaitGroup
		for i := range watches {
			group.Go(func() {
				path := fmt.Sprintf("/apis/g/v1/things%d", i)
				r, err := b.ask(c, "GET", path+"?watch=true", nil)
				if err != nil {
					b.Error(err)
					return
				}
				defer r.Body.Close()
				lines := bufio.NewScanner(r.Body)
				n := 0
				for ; lines.Scan(); n++ {
					if want := fmt.Sprintf("%s %d ", path, n); !strings.HasPrefix(lines.Text(), want) {
						b.Errorf("%.40q where %q is due", lines.Text(), want)
					}
				}
				if n != events || lines.Err() != nil {
					b.Errorf("%d events came: %v", n, lines.Err())
				}
			})
		}
		group.Wait()
		if b.connections() != 1 {
			b.Errorf("%d connections", b.connections())
		}
		c.CloseIdleConnections()
	})
}

// An answer is written to the connection at once, whatever its length.
func TestAnswersArePaired(t *testing.T) {
	measured(t, func(b *bench) {
		var sent *counted
		c := b.client(2)
		c.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			sent = &counted{Conn: theirs}
			b.wire.conns <- sent
			return ours, nil
		}
		size := 0
		b.api = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, size)) }
		for n, want := range []struct{ size, pieces int }{{0, -1}, {0, 1}, {1, 1}, {3000, 1}, {20_000, -1}, {1, 1}} {
			size = want.size
			if sent != nil {
				sent.pieces = nil
			}
			began := time.Now()
			r, err := b.ask(c, "GET", "/api", nil)
			if err != nil {
				b.Fatal(err)
			}
			if body, err := io.ReadAll(r.Body); len(body) != size || err != nil {
				b.Errorf("request %d: %d bytes of %d came: %v", n, len(body), size, err)
			}
			r.Body.Close()
			if waited := time.Since(began); waited != 0 {
				b.Errorf("an answer of %d bytes waited for %v", size, waited)
			}
			synctest.Wait()
			if len(sent.pieces) != want.pieces && want.pieces > 0 {
				b.Errorf("an answer of %d bytes was sent in %d pieces, not %d", size, len(sent.pieces), want.pieces)
			}
		}
		c.CloseIdleConnections()
	})
}
