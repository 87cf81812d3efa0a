package envtest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/anykind/anykind/internal/object/request"
)

// A Transcript records requests and their results, one line for each request, in the order of the
// responses, or of the starts of watches:
//
//	admin create /api/v1/namespaces/default/configmaps 201 settings {"data":{"color":"blue"}}
//	admin patch /api/v1/namespaces/default/configmaps/settings 200 data.color="green"
//	jane list /api/v1/secrets 403
//	admin delete /api/v1/namespaces/default/configmaps/settings 200 settings deleted
//
// A line has the user, the verb, the path, the status code (none without a response) and the
// change: all of a new object, the changed fields of an existing one. Transcripts are for golden
// files. Times, uids, ports, IP addresses of Services and random suffixes of generated names become
// <time>, <uid>, <port>, <ip> and <1>, <2>, ...; resourceVersions, managed fields and parameters of
// the response format are omitted.
//
// The order of concurrent requests varies. Writes of the server's own controllers are not requests.
type Transcript struct {
	of []Requests

	mu      sync.Mutex
	stopped bool
	lines   []*line
	begun   map[*request.Request]*line // of requests that have changed an object, and of watches
}

// A line is one request.
type line struct {
	user, verb, path string
	code             int
	changes          []change
}

// A change is a change of a key of the store.
type change struct {
	key           string
	before, after []byte
}

// Record starts a Transcript of requests that match any of the arguments, or of all requests
// without arguments.
func (te *Environment) Record(of ...Requests) *Transcript {
	if te.server == nil {
		panic("envtest: Record: " + errNotStarted.Error())
	}
	t := &Transcript{of: of, begun: map[*request.Request]*line{}}
	te.server.recorders.add(t)
	return t
}

// Stop ends the Transcript.
func (t *Transcript) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// String returns the lines, each with a newline.
func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out strings.Builder
	var s stable
	for _, l := range t.lines {
		code := "none"
		if l.code != 0 {
			code = fmt.Sprint(l.code)
		}
		text := strings.Join([]string{l.user, l.verb, l.path, code}, " ")
		for i, c := range l.changes {
			if i > 0 {
				text += ","
			}
			text += " " + s.describe(c, l.path)
		}
		out.WriteString(strings.TrimRight(s.text(text), " ") + "\n")
	}
	return out.String()
}

func (t *Transcript) wants(q *request.Request) bool {
	if t.stopped {
		return false
	}
	matches := func(r Requests) bool { return r.match(q) }
	return len(t.of) == 0 && q.Info.IsResource || slices.ContainsFunc(t.of, matches)
}

// recorders are the transcripts of a server.
type recorders struct {
	mu  sync.Mutex
	all []*Transcript
}

func (r *recorders) add(t *Transcript) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, t)
}

func (r *recorders) current() []*Transcript {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all
}

// record reports whether a transcript records the changes of a request.
func (r *recorders) record(q *request.Request) bool {
	for _, t := range r.current() {
		t.mu.Lock()
		wanted := t.wants(q)
		t.mu.Unlock()
		if wanted {
			return true
		}
	}
	return false
}

// changed records a change of a request.
func (r *recorders) changed(q *request.Request, c change) {
	for _, t := range r.current() {
		t.mu.Lock()
		if t.wants(q) {
			l := t.begun[q]
			if l == nil {
				l = &line{}
				t.begun[q] = l
			}
			l.changes = append(l.changes, c)
		}
		t.mu.Unlock()
	}
}

// watched writes the line of a started watch.
func (r *recorders) watched(request *http.Request, q *request.Request) {
	for _, t := range r.current() {
		t.mu.Lock()
		if t.wants(q) {
			l := newLine(request, q, http.StatusOK)
			t.begun[q], t.lines = l, append(t.lines, l)
		}
		t.mu.Unlock()
	}
}

// answered writes the line of a completed request.
func (r *recorders) answered(request *http.Request, q *request.Request, code int) {
	for _, t := range r.current() {
		t.mu.Lock()
		before := t.begun[q]
		delete(t.begun, q)
		if t.wants(q) && (before == nil || before.path == "") {
			l := newLine(request, q, code)
			if before != nil {
				l.changes = before.changes
			}
			t.lines = append(t.lines, l)
		}
		t.mu.Unlock()
	}
}

func newLine(r *http.Request, q *request.Request, code int) *line {
	l := &line{user: "-", verb: q.Info.Verb, path: q.Info.Path, code: code}
	if q.User != nil {
		l.user = strings.ReplaceAll(q.User.Name, " ", "_")
	}
	telling := url.Values{}
	for name, values := range r.URL.Query() {
		if slices.Contains([]string{"labelSelector", "fieldSelector", "dryRun", "fieldManager", "force", "propagationPolicy"}, name) {
			telling[name] = values
		}
	}
	if query := telling.Encode(); query != "" {
		l.path += "?" + query
	}
	return l
}
