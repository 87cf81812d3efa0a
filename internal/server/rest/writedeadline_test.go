package rest_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A wire is a listener with connections in memory, so that the test controls time.
type wire chan net.Conn

func (w wire) Accept() (net.Conn, error) {
	c, ok := <-w
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (w wire) Close() error   { return nil }
func (w wire) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func (w wire) dial() net.Conn {
	ours, theirs := net.Pipe()
	w <- theirs
	return ours
}

// client returns a client for one version of HTTP. The test calls leave at its end.
func (w wire) client(protocol string) (client *http.Client, leave func()) {
	transport := &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return w.dial(), nil },
		Protocols:   new(http.Protocols),
	}
	transport.Protocols.SetHTTP1(protocol == "HTTP/1.1")
	transport.Protocols.SetUnencryptedHTTP2(protocol == "HTTP/2.0")
	return &http.Client{Transport: transport}, transport.CloseIdleConnections
}

// listen serves over connections in memory until the test ends.
func (s *server) listen(handler http.Handler) wire {
	w := make(wire)
	hs := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	hs.Protocols.SetHTTP1(true)
	hs.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan error)
	go func() { done <- hs.Serve(w) }()
	s.t.Cleanup(func() {
		close(w)
		<-done
		_ = hs.Close()
		time.Sleep(time.Minute) // remaining connections end
	})
	return w
}

// A watch survives hours without an event: its client has read everything.
func TestIdleWatch(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testIdleWatch(t, protocol) })
		})
	}
}

func testIdleWatch(t *testing.T, protocol string) {
	s := newServer(t)
	w := s.listen(s.handler)
	client, leave := w.client(protocol)
	defer leave()
	s.make("a")
	response, err := client.Get("http://anykind" + leads + "?watch=1&timeoutSeconds=20000")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.Proto != protocol {
		t.Errorf("spoke %s", response.Proto)
	}
	lines := bufio.NewReader(response.Body)
	for i := range 3 {
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"type"`) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		time.Sleep(time.Hour)
		s.merge(leads+"/a", fmt.Sprintf(`{"spec":{"n":%d}}`, i)).is(200)
	}
}

// "A slow or dead watcher ... does not hold memory after it is gone": a watch whose client does
// not read ends after a minute.
func TestStuckWatch(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testStuckWatch(t, protocol) })
		})
	}
}

func testStuckWatch(t *testing.T, protocol string) {
	s := newServer(t)
	ended := make(chan time.Time, 1)
	w := s.listen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.handler.ServeHTTP(w, r)
		ended <- time.Now()
	}))
	client, leave := w.client(protocol)
	defer leave()
	s.make("a")
	response, err := client.Get("http://anykind" + leads + "?watch=1")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	time.Sleep(time.Hour) // no deadline is set
	began := time.Now()
	for i := range 12 { // more than the buffers between server and client
		s.post(leads, wide(fmt.Sprint("w", i), 500_000)).is(201) // the write does not wait for it
	}
	if took := (<-ended).Sub(began); took > 2*time.Minute {
		t.Errorf("it ended after %v", took)
	}
}

// A watch with many large events writes them in pieces, each line once.
func TestLargeEvents(t *testing.T) { synctest.Test(t, testLargeEvents) }

func testLargeEvents(t *testing.T) {
	s := newServer(t)
	first := s.make("first")
	want := ""
	for i, size := range []int{10, 50_000, 100, 20_000, 20_000, 32 << 10, 100_000, 10} {
		name := fmt.Sprintf("w%d", i)
		s.post(leads, wide(name, size)).is(201)
		want += ", ADDED " + name
	}
	lines, _ := s.follow(leads+"?watch=1&timeoutSeconds=1&resourceVersion="+first, 0)
	if told(lines) != strings.TrimPrefix(want, ", ") {
		t.Errorf("told %s", told(lines))
	}
}
