package rest_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/memkv"
)

// counted counts the bytes of an answer.
type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// A watch with initial events is one stream of gzip, if the client takes it. Each event arrives at once, and the stream has an
// end.
func TestWatchOfInitialEventsIsCompressed(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			t.Parallel()
			gates := gate.With(map[gate.Name]bool{gate.WatchListCompression: on})
			s := newServerServing(t, memkv.New(memkv.Options{}), registry.Options{}, rest.Options{Gates: gates}, lead())
			for i := range 300 {
				s.make(fmt.Sprintf("lead-%03d", i))
			}
			web := httptest.NewServer(s.handler)
			defer web.Close()
			open := func(query string) *http.Response {
				r, err := http.NewRequestWithContext(t.Context(), "GET", web.URL+leads+"?watch=1&timeoutSeconds=6&allowWatchBookmarks=true&"+query, nil)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Accept-Encoding", "gzip")
				a, err := http.DefaultTransport.RoundTrip(r)
				if err != nil || a.StatusCode != 200 {
					t.Fatal(err, a)
				}
				t.Cleanup(func() { a.Body.Close() })
				return a
			}
			if a := open("resourceVersion=1"); a.Header.Get("Content-Encoding") != "" {
				t.Errorf("a watch without initial events has the encoding %s", a.Header.Get("Content-Encoding"))
			}
			a := open("sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
			if zipped := a.Header.Get("Content-Encoding") == "gzip" && a.Header.Get("Vary") == "Accept-Encoding"; zipped != on {
				t.Fatalf("the answer has %v", a.Header)
			}
			sent := &counted{Reader: a.Body}
			var body io.Reader = sent
			if on {
				var err error
				if body, err = gzip.NewReader(sent); err != nil {
					t.Fatal(err)
				}
			}
			lines, plain := bufio.NewReaderSize(body, 16), 0
			next := func(want string) {
				t.Helper()
				line, err := lines.ReadString('\n')
				for strings.Contains(line, "BOOKMARK") && !strings.Contains(want, "initial-events-end") { // one near the end
					line, err = lines.ReadString('\n')
				}
				if plain += len(line); err != nil || !strings.Contains(line, want) {
					t.Fatalf("%v: %s, want %s", err, line, want)
				}
			}
			for i := range 300 {
				next(fmt.Sprintf(`"name":"lead-%03d"`, i))
			}
			next(`"k8s.io/initial-events-end":"true"`)
			if on && sent.n > plain/3 {
				t.Errorf("%d bytes became %d", plain, sent.n)
			}
			for _, name := range []string{"later", "last"} {
				s.make(name)
				next(`"name":"` + name + `"`)
			}
			if rest, err := io.ReadAll(lines); err != nil || strings.Contains(string(rest), "ADDED") {
				t.Errorf("the end is %s, %v", rest, err)
			}
		})
	}
}

// An error in place of events is not compressed.
func TestRefusedWatchIsNotCompressed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := httptest.NewRequestWithContext(t.Context(), "GET", leads+"?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99999", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	if w.Header().Get("Content-Encoding") != "" || !strings.Contains(w.Body.String(), "Too large resource version") {
		t.Errorf("%v: %s", w.Header(), w.Body)
	}
}
