package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// A recorder decides by the path and records the last request. It allows impersonation wherever
// it allows the request.
type recorder struct{ last *request.Request }

func (z *recorder) Authorize(ctx context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	z.last = request.From(ctx)
	switch {
	case a.Path == "/allowed", a.Path == "/metrics", a.Verb == "impersonate:user-info":
		return authz.Allow, "a friend", nil
	case a.Path == "/denied":
		return authz.Deny, "a foe", nil
	case a.Path == "/failing":
		return authz.NoOpinion, "", errors.New("no answer")
	default:
		return authz.NoOpinion, "a stranger", nil
	}
}

func recorded() (*Server, *recorder) {
	z := &recorder{}
	o := everyone(nothing)
	o.Authorizer = z
	return New(o), z
}

// The request carries all that an audit event says about authorization: the decision, its reason,
// and both users of an impersonation.
func TestWhatIsSaidOfARequest(t *testing.T) {
	const decision, reason = "authorization.k8s.io/decision", "authorization.k8s.io/reason"
	s, z := recorded()
	for path, want := range map[string][]request.Annotation{
		"/allowed": {{Key: decision, Value: "allow"}, {Key: reason, Value: "a friend"}},
		"/denied":  {{Key: decision, Value: "forbid"}, {Key: reason, Value: "a foe"}},
		"/unknown": {{Key: decision, Value: "forbid"}, {Key: reason, Value: "a stranger"}},
		"/failing": {{Key: reason, Value: "internal error"}},
	} {
		ask(s, "GET", path, "bob")
		if got := z.last.Annotations; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v", path, got)
		}
		if z.last.User.Name != "bob" || z.last.Impersonator != nil {
			t.Errorf("%s: of %v and %v", path, z.last.User, z.last.Impersonator)
		}
	}
	r := newRequest("GET", "/allowed", "root")
	r.Header.Set("Impersonate-User", "eve")
	s.ServeHTTP(httptest.NewRecorder(), r)
	if q := z.last; q.User.Name != "eve" || q.Impersonator == nil || q.Impersonator.Name != "root" || q.Constraint != "impersonate:user-info" {
		t.Errorf("%v as %v by %q", q.Impersonator, q.User, q.Constraint)
	}
}

// Requests are counted by outcome and by the class of the user name, never by the name itself.
func TestAccessMetrics(t *testing.T) {
	s, _ := recorded()
	s.options.Authenticator.(tokens)["mail"] = &request.User{Name: "bob@example.com"}
	s.options.Authenticator.(tokens)["kubelet"] = &request.User{Name: "kubelet"}
	for _, asked := range []struct{ path, token string }{
		{"/allowed", "bob"}, {"/allowed", "mail"}, {"/denied", "kubelet"}, {"/unknown", "bob"}, {"/failing", "bob"}, {"/allowed", "mallory"},
	} {
		ask(s, "GET", asked.path, asked.token)
	}
	r := newRequest("GET", "/allowed", "root")
	r.Header.Set("Impersonate-User", "eve")
	s.ServeHTTP(httptest.NewRecorder(), r)
	r = newRequest("GET", "/denied", "root")
	r.Header.Set("Impersonate-User", "eve")
	s.ServeHTTP(httptest.NewRecorder(), r)
	page := ask(s, "GET", "/metrics", "bob").Body.String()
	for _, want := range []string{
		`authentication_attempts{result="success"} 8`,
		`authentication_attempts{result="failure"} 1`,
		`authentication_duration_seconds_count{result="success"} 8`,
		`authenticated_user_requests{username="email_id"} 1`,
		`authenticated_user_requests{username="kubelet"} 1`,
		`authenticated_user_requests{username="other"} 6`,
		`authorization_attempts_total{result="allowed"} 4`,
		`authorization_attempts_total{result="denied"} 1`,
		`authorization_attempts_total{result="no-opinion"} 1`,
		`authorization_attempts_total{result="error"} 1`,
		`authorization_duration_seconds_count{result="allowed"} 4`,
		`apiserver_impersonation_attempts_total{decision="allowed",mode="user-info"} 1`,
		`apiserver_impersonation_attempts_total{decision="denied",mode=""} 1`,
		`apiserver_impersonation_authorization_attempts_total{decision="allowed",mode="user-info"} 2`,
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("there is no %s", want)
		}
	}
	if strings.Contains(page, "example.com") {
		t.Error("the metrics have the name of a user")
	}
}

// Browsers do not render a refusal as HTML: it may contain text of the request.
func TestRefusalsAreNoPages(t *testing.T) {
	s, _ := recorded()
	denied := newRequest("GET", "/denied", "bob")
	nameless := newRequest("GET", "/allowed", "bob")
	nameless.Header.Set("Impersonate-Extra-A", "<x>")
	for want, r := range map[int]*http.Request{403: denied, 400: nameless} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if got := w.Header().Get("X-Content-Type-Options"); w.Code != want || got != "nosniff" {
			t.Errorf("%d, want %d: X-Content-Type-Options %q", w.Code, want, got)
		}
	}
}
