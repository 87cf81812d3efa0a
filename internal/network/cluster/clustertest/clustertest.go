// Package clustertest has an API server for tests that extend a cluster.
//
// It stores objects by path and sends watch events. It knows no kinds, and validates nothing.
package clustertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/network/cluster"
)

// A Server is the API server of the cluster.
type Server struct {
	t    testing.TB
	http *httptest.Server

	mu       sync.Mutex
	revision int
	expired  int               // watches from before are refused
	objects  map[string]object // by path
	past     []event
	changed  chan struct{} // closed when an event is added
	answers  map[string]http.HandlerFunc
	requests []string
}

type object = map[string]any

type event struct {
	folder, kind string
	object       object
	revision     int
}

// Start starts a Server for the duration of a test.
func Start(t testing.TB) *Server {
	s := &Server{t: t, objects: map[string]object{}, changed: make(chan struct{}), answers: map[string]http.HandlerFunc{}}
	s.http = httptest.NewTLSServer(s)
	t.Cleanup(func() {
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

// Kubeconfig returns the path of a kubeconfig for the Server.
func (s *Server) Kubeconfig() string {
	file := filepath.Join(s.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q,"insecure-skip-tls-verify":true}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, s.http.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// Client returns a Client of the Server.
func (s *Server) Client() *cluster.Client {
	c, err := cluster.Open(s.Kubeconfig(), (&net.Dialer{}).DialContext)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// Put stores an object, given as YAML, at a path.
func (s *Server) Put(at, text string) {
	var o object
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		s.t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(at, o)
}

// Delete deletes the object at a path.
func (s *Server) Delete(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delete(at)
}

// Get returns the object at a path as JSON, or "".
func (s *Server) Get(at string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[at]
	if !ok {
		return ""
	}
	data, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// Answer replaces the handler of a path.
func (s *Server) Answer(at string, by http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[at] = by
}

// Requests returns the number of requests with a method.
func (s *Server) Requests(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r == method {
			n++
		}
	}
	return n
}

// Expire ends all watches, and refuses to resume them.
func (s *Server) Expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision++
	s.expired = s.revision
	close(s.changed)
	s.changed = make(chan struct{})
}

// Break closes all connections.
func (s *Server) Break() { s.http.CloseClientConnections() }

func (s *Server) put(at string, o object) {
	s.revision++
	metadata, _ := o["metadata"].(object)
	if metadata == nil {
		metadata = object{}
		o["metadata"] = metadata
	}
	metadata["name"], metadata["resourceVersion"] = path.Base(at), strconv.Itoa(s.revision)
	if metadata["uid"] == nil {
		metadata["uid"] = "uid-" + strconv.Itoa(s.revision)
	}
	kind := "MODIFIED"
	if s.objects[at] == nil {
		kind = "ADDED"
	}
	s.objects[at] = o
	s.tell(path.Dir(at), kind, o)
}

func (s *Server) delete(at string) {
	if o := s.objects[at]; o != nil {
		s.revision++
		delete(s.objects, at)
		s.tell(path.Dir(at), "DELETED", o)
	}
}

func (s *Server) tell(folder, kind string, o object) {
	s.past = append(s.past, event{folder, kind, o, s.revision})
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method)
	by := s.answers[r.URL.Path]
	s.mu.Unlock()
	switch {
	case by != nil:
		by(w, r)
	case r.URL.Query().Get("watch") == "true":
		s.watch(w, r)
	default:
		s.answer(w, r)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, found := s.objects[r.URL.Path]
	switch r.Method {
	case http.MethodGet:
		if !found && s.isFolder(r.URL.Path) {
			o, found = s.list(r.URL.Path), true
		}
	case http.MethodPatch:
		body, _ := io.ReadAll(r.Body) // a truncated body is not JSON
		var fields object
		if err := json.Unmarshal(body, &fields); err != nil {
			s.t.Error(err)
			return
		}
		o, found = merged(o, fields), true
		s.put(r.URL.Path, o)
	case http.MethodDelete:
		s.delete(r.URL.Path)
	}
	if !found {
		w.WriteHeader(http.StatusNotFound)
		o = object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
	}
	_ = json.NewEncoder(w).Encode(o) // the client may have disconnected
}

// isFolder reports whether a path is a collection: collections have an even number of segments
// below a group.
func (s *Server) isFolder(at string) bool { return strings.HasSuffix(at, "s") && s.objects[at] == nil }

func (s *Server) list(folder string) object {
	items := []any{}
	for at, o := range s.objects {
		if path.Dir(at) == folder {
			items = append(items, o)
		}
	}
	return object{"metadata": object{"resourceVersion": strconv.Itoa(s.revision)}, "items": items}
}

func merged(o, fields object) object {
	out := object{}
	for key, value := range o {
		out[key] = value
	}
	for key, value := range fields {
		was, isTree := out[key].(object)
		if to, ok := value.(object); ok && isTree {
			value = merged(was, to)
		}
		out[key] = value
	}
	return out
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	at, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		s.t.Errorf("a watch from %q", r.URL.Query().Get("resourceVersion"))
		return
	}
	next := 0
	for {
		s.mu.Lock()
		for ; next < len(s.past); next++ {
			if e := s.past[next]; e.revision > at && e.folder == r.URL.Path {
				_ = json.NewEncoder(w).Encode(object{"type": e.kind, "object": e.object}) // see above
			}
		}
		changed, expired := s.changed, at < s.expired
		s.mu.Unlock()
		if expired {
			_ = json.NewEncoder(w).Encode(object{"type": "ERROR", "object": object{"kind": "Status", "status": "Failure", "reason": "Expired", "code": http.StatusGone}})
			return
		}
		w.(http.Flusher).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}
