package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// tokens maps bearer tokens to the users of these tests. Without a token a request is anonymous;
// an unknown token fails.
type tokens map[string]*request.User

func (t tokens) Authenticate(r *http.Request) (*request.User, bool, error) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		return &request.User{Name: request.Anonymous}, true, nil
	}
	u := t[token]
	return u, u != nil, nil
}

type authorizer func(*authz.Attributes) (bool, string, error)

func (f authorizer) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	allowed, reason, err := f(a)
	if allowed {
		return authz.Allow, reason, err
	}
	return authz.NoOpinion, reason, err
}

// everyone allows everything, with tokens for bob and root.
func everyone(api http.HandlerFunc) Options {
	return Options{
		API: api,
		Authenticator: tokens{
			"bob":  {Name: "bob", Groups: []string{"devs"}},
			"root": {Name: "root", Groups: []string{request.Masters}},
		},
		Authorizer: authorizer(func(*authz.Attributes) (bool, string, error) { return true, "", nil }),
	}
}

func newRequest(method, path, token string) *http.Request {
	r := httptest.NewRequest(method, "https://anykind"+path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return r
}

func ask(s *Server, method, path, token string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, newRequest(method, path, token))
	return w
}

func statusOf(t *testing.T, w *httptest.ResponseRecorder) metav1.Status {
	t.Helper()
	var s metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || s.Kind != "Status" {
		t.Fatalf("answer is not a Status: %d %s", w.Code, w.Body)
	}
	return s
}

func nothing(http.ResponseWriter, *http.Request) {}

func TestEveryAnswerHasAnAuditIDAndIsNotCached(t *testing.T) {
	s := New(everyone(nothing))
	for _, path := range []string{"/api/v1/namespaces", "/livez", "/debug/nothing", "/api?timeout=soon"} {
		h := ask(s, "GET", path, "").Header()
		if h.Get("Audit-Id") == "" || h.Get("Cache-Control") != "no-cache, private" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
	r := newRequest("GET", "/livez", "")
	r.Header.Set("Audit-ID", "mine")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if got := w.Header().Get("Audit-Id"); got != "mine" {
		t.Errorf("the client's audit id became %q", got)
	}
}

func TestPanicFailsOneRequest(t *testing.T) {
	var log bytes.Buffer
	o := everyone(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("late") {
			_, _ = io.WriteString(w, "half an ans")
		}
		panic("a bug")
	})
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := New(o)

	w := ask(s, "GET", "/api/v1/pods", "bob")
	if st := statusOf(t, w); w.Code != 500 || st.Reason != metav1.StatusReasonInternalError {
		t.Errorf("answered %d %v", w.Code, st)
	}
	for _, want := range []string{"a bug", "server_test.go", w.Header().Get("Audit-Id")} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log does not have %q: %s", want, &log)
		}
	}

	// An answer that had begun must not look complete.
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("panicked with %v", got)
		}
	}()
	ask(s, "GET", "/api/v1/pods?late", "bob")
	t.Error("a broken answer ended like a whole one")
}

func TestAbortIsNotAPanic(t *testing.T) {
	var log bytes.Buffer
	o := everyone(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	defer func() {
		if got := recover(); got != http.ErrAbortHandler || log.Len() > 0 {
			t.Errorf("panicked with %v, logged %s", got, &log)
		}
	}()
	ask(New(o), "GET", "/api/v1/pods", "bob")
}

// "Request time: 60 s, watches excepted", and no more if a client asks for more.
func TestRequestTime(t *testing.T) {
	tests := []struct {
		name, path string
		want       time.Duration // 0: the context does not end
	}{
		{"default", "/apis/g/v1/things", 60 * time.Second},
		{"as asked", "/apis/g/v1/things?timeout=5s", 5 * time.Second},
		{"no more than the default", "/apis/g/v1/things?timeout=2h", 60 * time.Second},
		{"none asked", "/apis/g/v1/things?timeout=0s", 60 * time.Second},
		{"less than none", "/apis/g/v1/things?timeout=-3s", 60 * time.Second},
		{"watch", "/apis/g/v1/things?watch=true&timeout=5s", 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				s := New(everyone(func(_ http.ResponseWriter, r *http.Request) {
					deadline, ok := r.Context().Deadline()
					if ok != (test.want > 0) || ok && deadline.Sub(start) != test.want {
						t.Errorf("deadline after %v, %v", deadline.Sub(start), ok)
					}
				}))
				if w := ask(s, "GET", test.path, "bob"); w.Code != 200 {
					t.Errorf("answered %d", w.Code)
				}
			})
		})
	}
}

func TestUnreadableTimeout(t *testing.T) {
	// The timeout is checked before authentication.
	w := ask(New(everyone(nothing)), "GET", "/apis/g/v1/things?timeout=abc", "missing")
	want := `invalid timeout specified in the request URL - time: invalid duration "abc"`
	if st := statusOf(t, w); w.Code != 400 || st.Message != want {
		t.Errorf("answered %d %q", w.Code, st.Message)
	}
}

// stuckBody blocks reads until the connection has a deadline.
type stuckBody struct{ deadline chan struct{} }

func (b stuckBody) Read([]byte) (int, error) { <-b.deadline; return 0, errors.New("i/o timeout") }
func (stuckBody) Close() error               { return nil }

type deadlineRecorder struct {
	*httptest.ResponseRecorder
	body stuckBody
}

func (w deadlineRecorder) SetReadDeadline(time.Time) error { close(w.body.deadline); return nil }

// "Body read: a deadline of its own."
func TestBodyThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(everyone(func(_ http.ResponseWriter, r *http.Request) {
			if _, err := io.ReadAll(r.Body); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("reading the body: %v", err)
			}
		}))
		body := stuckBody{make(chan struct{})}
		r := newRequest("POST", "/apis/g/v1/things", "bob")
		r.Body = body
		s.ServeHTTP(deadlineRecorder{httptest.NewRecorder(), body}, r)
	})
}

// "In flight: 400 reading + 200 writing, then 429 with Retry-After; health always
// answers."
func TestFullServer(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	o := everyone(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("stay") {
			arrived <- struct{}{}
			<-release
		}
	})
	s := New(o)
	stay := func(method string) {
		go ask(s, method, "/apis/g/v1/things?stay", "bob")
		<-arrived
	}
	defer close(release)
	for range 400 {
		stay("GET")
	}
	for range 200 {
		stay("POST")
	}

	tests := []struct {
		name, method, path, token string
		want                      int
	}{
		{"one more read", "GET", "/apis/g/v1/things", "bob", 429},
		{"one more write", "PUT", "/apis/g/v1/things/x", "bob", 429},
		{"watch", "GET", "/apis/g/v1/things?watch=true", "bob", 200},
		{"administrator", "GET", "/apis/g/v1/things", "root", 200},
		{"administrator writes", "POST", "/apis/g/v1/things", "root", 200},
		{"liveness", "GET", "/livez", "", 200},
		{"readiness", "GET", "/readyz/ping", "", 200},
		{"profile", "GET", "/debug/pprof/goroutine?debug=1", "bob", 200},
	}
	for _, test := range tests {
		w := ask(s, test.method, test.path, test.token)
		if w.Code != test.want {
			t.Errorf("%s: answered %d, want %d", test.name, w.Code, test.want)
		}
		if test.want == 429 && (w.Header().Get("Retry-After") != "1" ||
			w.Body.String() != "Too many requests, please try again later.\n") {
			t.Errorf("%s: %v %q", test.name, w.Header(), w.Body)
		}
	}
	release <- struct{}{}
	for ask(s, "GET", "/apis/g/v1/things", "bob").Code == 429 && ask(s, "PUT", "/apis/g/v1/things/x", "bob").Code == 429 {
		// The released request is about to leave.
	}
}

// Without limits no request is rejected.
func TestLimits(t *testing.T) {
	tests := []struct {
		name   string
		limits Limits
		want   int // code of a second concurrent request
	}{
		{"none", Limits{Reading: Unlimited, Writing: Unlimited}, 200},
		{"one", Limits{Reading: 1, Writing: 1}, 429},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			arrived, release := make(chan struct{}), make(chan struct{})
			o := everyone(func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Has("stay") {
					close(arrived)
					<-release
				}
			})
			o.Limits = test.limits
			s := New(o)
			first := make(chan int)
			go func() { first <- ask(s, "PUT", "/apis/g/v1/things/x?stay", "bob").Code }()
			<-arrived
			if got := ask(s, "PUT", "/apis/g/v1/things/x", "bob").Code; got != test.want {
				t.Errorf("the second is answered %d, want %d", got, test.want)
			}
			close(release)
			if got := <-first; got != 200 {
				t.Errorf("the first is answered %d", got)
			}
			if got := ask(s, "PUT", "/apis/g/v1/things/x", "bob").Code; got != 200 {
				t.Errorf("the third is answered %d", got)
			}
		})
	}
}

func TestAccess(t *testing.T) {
	o := everyone(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the credential went further than it must")
		}
		_, _ = io.WriteString(w, request.UserFrom(r.Context()).Name)
	})
	o.Authorizer = authorizer(func(a *authz.Attributes) (bool, string, error) {
		switch {
		case a.User.Name == "root", a.Path == "/livez":
			return true, "", nil
		case a.Resource == "broken":
			return false, "", errors.New("no answer")
		}
		return false, "because", nil
	})
	s := New(o)
	tests := []struct {
		name, path, token string
		code              int
		body              string
		http2             string // Connection header for an HTTP/2 client
	}{
		{"allowed", "/apis/g/v1/things", "root", 200, "root", ""},
		{"forbidden", "/apis/g/v1/things", "bob", 403, `"Forbidden"`, ""},
		{"authorizer fails", "/apis/g/v1/broken", "bob", 500, `no answer`, ""},
		{"unknown token", "/apis/g/v1/things", "mallory", 401, `"Unauthorized"`, "close"},
		{"unknown token asks for health", "/livez", "mallory", 401, `"Unauthorized"`, "close"},
		{"anonymous", "/apis/g/v1/things", "", 403, `"Forbidden"`, "close"},
		{"anonymous asks for health", "/livez", "", 200, "ok", "close"},
		{"own page", "/metrics", "bob", 403, `"Forbidden"`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRequest("GET", test.path, test.token)
			r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != test.code || !strings.Contains(w.Body.String(), test.body) {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
			if got := w.Header().Get("Connection"); got != test.http2 {
				t.Errorf("Connection: %q", got)
			}
		})
	}
}

// An impersonated request has the other user from then on: for the authorizer, for the handler,
// and for further access checks. The handler does not see the headers.
func TestImpersonation(t *testing.T) {
	o := everyone(func(w http.ResponseWriter, r *http.Request) {
		q := request.From(r.Context())
		fmt.Fprintf(w, "%s for %s", q.User.Name, q.Impersonator.Name)
		for name := range r.Header {
			if strings.HasPrefix(name, "Impersonate-") {
				t.Errorf("the handler sees %s", name)
			}
		}
	})
	o.Authorizer = authorizer(func(a *authz.Attributes) (bool, string, error) {
		return a.User.In(request.Masters) || a.Verb == "get", "", nil
	})
	s := New(o)
	for _, tt := range []struct {
		token string
		code  int
		body  string
	}{
		{"root", 200, "bob for root"},
		{"bob", 403, `User \"bob\" cannot impersonate-on:user-info:get path \"/apis\"`},
		{"mallory", 401, "Unauthorized"},
	} {
		r := newRequest("GET", "/apis", tt.token)
		r.Header.Set("Impersonate-User", "bob")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.body) {
			t.Errorf("%s: %d %s", tt.token, w.Code, w.Body)
		}
	}
}

func TestAccessLog(t *testing.T) {
	var log bytes.Buffer
	o := everyone(nothing)
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	ask(New(o), "GET", "/api/v1/secrets?token=hush", "bob")
	if log.Len() > 0 {
		t.Errorf("logged below the debug level: %s", &log)
	}
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ask(New(o), "GET", "/api/v1/secrets?token=hush", "bob")
	if got := log.String(); !strings.Contains(got, `user=bob impersonator="" code=200`) {
		t.Errorf("logged %s", got)
	}
	if strings.Contains(log.String(), "hush") {
		t.Errorf("logged a secret: %s", &log)
	}
}

// certificate returns a certificate for localhost of httptest, and a client that trusts it.
func certificate(t *testing.T) (*tls.Config, *http.Client) {
	t.Helper()
	borrowed := httptest.NewUnstartedServer(nil)
	borrowed.EnableHTTP2 = true
	borrowed.StartTLS()
	t.Cleanup(borrowed.Close)
	return &tls.Config{Certificates: borrowed.TLS.Certificates}, borrowed.Client()
}

// A handler can check access with another verb.
func TestAllowed(t *testing.T) {
	o := everyone(func(w http.ResponseWriter, r *http.Request) {
		for _, verb := range []string{"get", "create", "break"} {
			fmt.Fprintln(w, verb, request.May(r.Context(), verb))
		}
	})
	o.Authorizer = authorizer(func(a *authz.Attributes) (bool, string, error) {
		if a.Verb == "break" {
			return false, "", errors.New("no answer")
		}
		return a.Verb == "get", "", nil
	})
	s := New(o)
	for path, want := range map[string]string{
		"/api/v1/namespaces/n/pods/p/exec": "get <nil>\ncreate pods \"p\" is forbidden: User \"bob\" cannot create resource \"pods/exec\" in API group \"\" in the namespace \"n\"\nbreak Internal error occurred: no answer\n",
		"/api/v1/namespaces/n/pods/p":      "get <nil>\ncreate pods \"p\" is forbidden: User \"bob\" cannot create resource \"pods\" in API group \"\" in the namespace \"n\"\nbreak Internal error occurred: no answer\n",
	} {
		if got := ask(s, "GET", path, "bob").Body.String(); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
