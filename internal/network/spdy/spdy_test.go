package spdy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/network/spdy"
	"github.com/anykind/anykind/internal/network/spdy/spdytest"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (*spdy.Conn, *spdytest.Server, net.Conn) {
	ours, theirs := net.Pipe()
	c := spdy.New(ours)
	t.Cleanup(func() {
		c.Close()
		theirs.Close()
	})
	return c, spdytest.New(theirs), theirs
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// expect reads a frame and compares it.
func expect(t *testing.T, s *spdytest.Server, want string) {
	t.Helper()
	f, err := s.Next()
	if got := fmt.Sprintf("%d flags %d of %d %v %.20s", f.Type, f.Flags, f.ID, f.Header, f.Body); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// Streams have odd, increasing ids and one header. Data flows in both directions, and each direction ends on its own.
func TestStreams(t *testing.T) {
	c, server, _ := pair(t)
	big := bytes.Repeat([]byte("x"), 3<<20)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for _, want := range []string{"1 flags 0 of 1 map[streamtype:stdin] ", "1 flags 0 of 3 map[streamtype:stdout] "} {
			expect(t, server, want)
			must(t, server.Send(spdytest.Frame{Type: spdytest.Settings, Body: make([]byte, 8)}))
			must(t, server.Send(spdytest.Frame{Type: spdytest.SynReply, ID: uint32(want[13] - '0')}))
		}
		expect(t, server, "0 flags 0 of 1 map[] hello")
		expect(t, server, "0 flags 1 of 1 map[] ")
		must(t, server.Send(spdytest.Frame{ID: 99, Body: []byte("no such stream")}))
		must(t, server.Send(spdytest.Frame{ID: 3, Body: big}))
		must(t, server.Send(spdytest.Frame{ID: 3, Body: []byte(" the end"), Flags: spdytest.Fin}))
		must(t, server.Send(spdytest.Frame{Type: spdytest.GoAway, Body: make([]byte, 4)}))
	}()
	in, err := c.Open("streamType", "stdin")
	must(t, err)
	out, err := c.Open("streamType", "stdout")
	must(t, err)
	_, err = io.WriteString(in, "hello")
	must(t, err)
	must(t, in.Close())
	must(t, in.Close())
	got, err := io.ReadAll(out)
	if want := string(big) + " the end"; err != nil || string(got) != want {
		t.Errorf("%d bytes, %v, want %d", len(got), err, len(want))
	}
	if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil { // ends with the connection
		t.Errorf("%q, %v", rest, err)
	}
	<-served
	if _, err := c.Open("streamType", "late"); err == nil {
		t.Error("a stream opens after the end of the connection")
	}
}

// A server may reject a stream, end the connection, or not reply at all.
func TestStreamsThatDoNotOpen(t *testing.T) {
	for want, act := range map[string]func(s *spdytest.Server, conn net.Conn) error{
		"the server reset the stream": func(s *spdytest.Server, _ net.Conn) error {
			return s.Send(spdytest.Frame{Type: spdytest.RstStream, ID: 1, Body: []byte{0, 0, 0, 3}})
		},
		"the connection is closed":                         func(_ *spdytest.Server, conn net.Conn) error { return conn.Close() },
		"the server did not reply to a new stream in time": func(*spdytest.Server, net.Conn) error { return nil },
	} {
		synctest.Test(t, func(t *testing.T) {
			c, server, conn := pair(t)
			go func() {
				_, err := server.Next()
				must(t, err)
				must(t, act(server, conn))
				_, _ = io.Copy(io.Discard, conn) // pings
			}()
			if _, err := c.Open("streamType", "error"); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// The client sends pings while the connection is idle, and replies to those of the server.
func TestPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, server, _ := pair(t)
		must(t, server.Send(spdytest.Frame{Type: spdytest.Ping, ID: 2}))
		for _, id := range []int{2, 1, 3} {
			expect(t, server, fmt.Sprintf("6 flags 0 of %d map[] ", id))
		}
	})
}
