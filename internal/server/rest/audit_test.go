package rest_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/request"
)

// An audited is the audit of a request at the level RequestResponse.
type audited struct{ body, answer string }

func (*audited) WantsBody() bool   { return true }
func (*audited) WantsAnswer() bool { return true }
func (a *audited) Object(_ request.ObjectMeta, body func() []byte) {
	a.body = string(body())
}
func (a *audited) Body(body []byte)     { a.body = string(body) }
func (a *audited) Answer(answer []byte) { a.answer = string(answer) }
func (a *audited) AnswerStatus(_ *metav1.Status, body func() []byte) {
	a.answer = string(body())
}

// auditTo serves a request with an audit.
func (s *server) auditTo(w http.ResponseWriter, q *request.Request, r *http.Request) (a *audited) {
	a = &audited{}
	q.Info, q.Audit = request.Parse(r), a
	defer func() {
		if reason := recover(); reason != nil && reason != http.ErrAbortHandler {
			panic(reason)
		}
	}()
	s.handler.ServeHTTP(w, r.WithContext(request.With(r.Context(), q)))
	return a
}

// A noting is a response whose header notes the annotations so far.
type noting struct {
	http.ResponseWriter
	request *request.Request
	noted   int
}

func (n *noting) WriteHeader(code int) {
	n.noted = len(n.request.Annotations)
	n.ResponseWriter.WriteHeader(code)
}

// An audit event says that the version of a resource is deprecated after the answer: the event
// ResponseStarted of a watch does not. A request without a handler has no such annotation.
func TestAuditOfVersion(t *testing.T) {
	d := lead()
	d.Versions[0].Deprecated, d.Versions[0].RemovedRelease = true, "1.99"
	s := newServerOf(t, d)
	for _, tt := range []struct {
		method, path, accept string
		code                 int
		want                 string
	}{
		{"GET", leads, "", 200, "k8s.io/deprecated=true k8s.io/removed-release=1.99"},
		{"GET", leads + "/x", "", 404, "k8s.io/deprecated=true k8s.io/removed-release=1.99"},
		{"GET", leads + "?watch=1", "bogus/x", 406, "k8s.io/deprecated=true k8s.io/removed-release=1.99"},
		{"GET", leads + "?watch=1&timeoutSeconds=bogus", "", 400, "k8s.io/deprecated=true k8s.io/removed-release=1.99"},
		{"TRACE", leads + "/x", "", 405, ""},
		{"GET", leads + "/x/nope", "", 404, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil)
		r.Header.Set("Accept", tt.accept)
		q, w := &request.Request{}, httptest.NewRecorder()
		n := &noting{w, q, 0}
		s.auditTo(n, q, r)
		var all []string
		for _, a := range q.Annotations {
			all = append(all, a.Key+"="+a.Value)
		}
		if got := strings.Join(all, " "); w.Code != tt.code || n.noted != 0 || got != tt.want {
			t.Errorf("%s %s: code %d, annotations %q, %d of them before the header", tt.method, tt.path, w.Code, got, n.noted)
		}
	}
}

// An apply with JSON is in the audit log as the client sent it, and one with YAML as JSON.
func TestAuditOfApply(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct{ body, want string }{
		{`{"kind": "Lead", "apiVersion": "test.example.com/v1", "metadata": {"name": "a"}, "spec": {"n": 1.0}}`, ""},
		{"kind: Lead\napiVersion: test.example.com/v1\nmetadata: {name: a}\n", `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a"}}`},
	} {
		if tt.want == "" {
			tt.want = tt.body
		}
		r := httptest.NewRequestWithContext(t.Context(), "PATCH", leads+"/a?fieldManager=m&dryRun=All", strings.NewReader(tt.body))
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
		if a := s.auditTo(httptest.NewRecorder(), &request.Request{}, r); a.body != tt.want {
			t.Errorf("%s\nis in the audit log as\n%s", tt.body, a.body)
		}
	}
}

// An unread is a response to a client that has left.
type unread struct{ *httptest.ResponseRecorder }

func (unread) Write([]byte) (int, error) { return 0, errors.New("the client has left") }

// The audit log has the whole list, in JSON, also if the client does not read it.
func TestAuditOfList(t *testing.T) {
	s := newServer(t)
	s.post(leads, named("a")).is(201)
	s.post(leads, named("b")).is(201)
	want := s.get(leads).body
	for name, w := range map[string]http.ResponseWriter{"read": httptest.NewRecorder(), "not read": unread{httptest.NewRecorder()}} {
		for _, accept := range []string{"application/json", "application/yaml"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", leads, nil)
			r.Header.Set("Accept", accept)
			if got := s.auditTo(w, &request.Request{}, r).answer; got != want {
				t.Errorf("%s, %s: the audit log has %q, want %q", name, accept, got, want)
			}
		}
	}
}
