package conn

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// frames are the types of HTTP/2 frames that make up an answer.
var frames = map[byte]string{0: "DATA", 1: "HEADERS"}

// calls returns the frames in each call of Write, with their lengths and "end" for the last of an
// answer. Calls without such a frame are left out.
func calls(pieces []string) (all []string) {
	for _, p := range pieces {
		var call []string
		for len(p) >= 9 {
			length := int(binary.BigEndian.Uint32([]byte("\x00" + p[:3])))
			if name := frames[p[3]]; name != "" {
				if name == "DATA" {
					name += fmt.Sprint(" ", length)
				}
				if p[4]&1 != 0 {
					name += " end"
				}
				call = append(call, name)
			}
			p = p[min(len(p), 9+length):]
		}
		if call != nil {
			all = append(all, strings.Join(call, ", "))
		}
	}
	return all
}

// A recorder is a connection that records each call of Write.
type recorder struct {
	net.Conn
	mu     sync.Mutex
	pieces []string
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	r.pieces = append(r.pieces, string(p))
	r.mu.Unlock()
	return r.Conn.Write(p)
}

// take returns the calls since the last one of take.
func (r *recorder) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	pieces := r.pieces
	r.pieces = nil
	return pieces
}

// single is a listener with one connection.
type single chan net.Conn

func (s single) Accept() (net.Conn, error) {
	if c, more := <-s; more {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (s single) Close() error   { return nil }
func (s single) Addr() net.Addr { return &net.TCPAddr{} }

// serve runs a test with a client of a net/http server, and with the server's calls of Write. TLS
// would encrypt each of these calls as one record.
func serve(t *testing.T, protocol int, handler http.HandlerFunc, test func(t *testing.T, get func() string, sent *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var protocols http.Protocols
		protocols.SetHTTP1(protocol == 1)
		protocols.SetUnencryptedHTTP2(protocol == 2)
		client, ours := net.Pipe()
		sent := &recorder{Conn: ours}
		listener := make(single, 1)
		listener <- sent
		server := &http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json") // with the default, net/http writes both at once
			handler(w, r)
		})}
		go func() { _ = server.Serve(listener) }() // ends with the listener
		transport := &http.Transport{Protocols: &protocols, DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil }}
		test(t, func() string {
			t.Helper()
			r, err := transport.RoundTrip(newRequest(t))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			synctest.Wait()
			return string(body)
		}, sent)
		transport.CloseIdleConnections()
		close(listener)
		_ = server.Close()
	})
}

func newRequest(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Over HTTP/2, net/http makes these calls of Write for an answer. answers holds the first back if
// it is alone, because the second follows immediately.
func TestWritesOfHTTP2(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(http.ResponseWriter)
		want string
	}{
		{"no body", func(http.ResponseWriter) {}, "HEADERS end"},
		{"a body", body(100), "HEADERS | DATA 100 end"},
		{"two writes", func(w http.ResponseWriter) { body(100)(w); body(200)(w) }, "HEADERS | DATA 300 end"},
		{"the longest body that waits", body(maxBody), fmt.Sprintf("HEADERS | DATA %d end", maxBody)},
		{"a longer body", body(maxBody + 1), fmt.Sprintf("HEADERS | DATA %d | DATA 1 end", maxBody)},
		{"a flushed head", func(w http.ResponseWriter) { w.WriteHeader(200); flush(w) }, "HEADERS | DATA 0 end"},
		{"flushed events", func(w http.ResponseWriter) { body(100)(w); flush(w); body(200)(w); flush(w) }, "HEADERS | DATA 100 | DATA 200 | DATA 0 end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			serve(t, 2, func(w http.ResponseWriter, _ *http.Request) { tt.do(w) }, func(t *testing.T, get func() string, sent *recorder) {
				for range 2 { // the first head of a connection defines table entries that later ones refer to
					get()
					if got := strings.Join(calls(sent.take()), " | "); got != tt.want {
						t.Errorf("net/http wrote %s, want %s", got, tt.want)
					}
				}
			})
		})
	}
}

// Before a handler returns, net/http writes nothing of an answer whose body has at most maxBody
// bytes. So at ExpectAnswer nothing has been sent.
func TestWritesAfterHandler(t *testing.T) {
	var sent *recorder
	for size, want := range map[int]int{maxBody: 0, maxBody + 1: 2} {
		early := 0
		serve(t, 2, func(w http.ResponseWriter, _ *http.Request) {
			body(size)(w)
			synctest.Wait()
			early = len(calls(sent.take()))
		}, func(t *testing.T, get func() string, s *recorder) {
			sent = s
			if got := len(get()); got != size || early != want {
				t.Errorf("of %d bytes, net/http wrote %d parts before the handler returned, want %d; %d bytes came", size, early, want, got)
			}
		})
	}
}

// Over HTTP/1.1, net/http writes head and body together, so no head is held back.
func TestWritesOfHTTP1(t *testing.T) {
	serve(t, 1, func(w http.ResponseWriter, _ *http.Request) { body(100)(w) }, func(t *testing.T, get func() string, sent *recorder) {
		get()
		if pieces := sent.take(); len(pieces) != 1 || !strings.HasPrefix(pieces[0], "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(pieces[0], "\r\n\r\n"+strings.Repeat("x", 100)) {
			t.Errorf("net/http wrote %q", pieces)
		}
	})
	serve(t, 1, func(w http.ResponseWriter, _ *http.Request) { body(100)(w); flush(w); body(200)(w) }, func(t *testing.T, get func() string, sent *recorder) {
		get()
		if pieces := sent.take(); len(pieces) != 2 || !strings.HasSuffix(pieces[0], "\r\n\r\n64\r\n"+strings.Repeat("x", 100)+"\r\n") ||
			pieces[1] != "c8\r\n"+strings.Repeat("x", 200)+"\r\n0\r\n\r\n" {
			t.Errorf("net/http wrote %q", pieces)
		}
	})
}

func body(size int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _, _ = io.WriteString(w, strings.Repeat("x", size)) }
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
