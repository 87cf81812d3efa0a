package webhook

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/network/review/reviewtest"
	"github.com/anykind/anykind/internal/object/request"
)

func newWebhook(s *reviewtest.Server, change func(*Options)) *Webhook {
	o := Options{Server: s, Version: "v1", OnError: authz.NoOpinion, FailedOpen: func(error) {}, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	return New(o)
}

// attributes returns the attributes of a resource request, modified by change.
func attributes(change func(*authz.Attributes)) *authz.Attributes {
	a := &authz.Attributes{User: &request.User{Name: "eve"}, Info: request.Info{IsResource: true, Verb: "get", Version: "v1", Resource: "pods"}}
	if change != nil {
		change(a)
	}
	return a
}

// The answer of the server is the decision. The failure policy decides only after a failure.
func TestDecisions(t *testing.T) {
	for _, tt := range []struct {
		name, status string
		onError      authz.Decision
		want         authz.Decision
		reason, err  string
		failedOpen   int
	}{
		{"allowed", `{"allowed":true,"reason":"friend"}`, authz.Deny, authz.Allow, "friend", "", 0},
		{"denied", `{"allowed":false,"denied":true,"reason":"foe"}`, authz.NoOpinion, authz.Deny, "foe", "", 0},
		{"not known", `{"allowed":false,"reason":"who?"}`, authz.Deny, authz.NoOpinion, "who?", "", 0},
		{"nothing", `{}`, authz.Deny, authz.NoOpinion, "", "", 0},
		{"both", `{"allowed":true,"denied":true,"reason":"maybe"}`, authz.NoOpinion, authz.Deny, "maybe", "webhook subject access review returned both allow and deny response", 0},
		{"an error there", `{"allowed":true,"evaluationError":"half known"}`, authz.Deny, authz.Allow, "", "", 0},
		{"not reached, fails open", "", authz.NoOpinion, authz.NoOpinion, "", "not reached", 1},
		{"not reached, fails closed", "", authz.Deny, authz.Deny, "", "not reached", 0},
	} {
		for _, version := range []string{"v1", "v1beta1"} {
			s, opened := &reviewtest.Server{Status: tt.status}, 0
			w := newWebhook(s, func(o *Options) {
				o.Version, o.OnError = version, tt.onError
				o.FailedOpen = func(error) { opened++ }
			})
			got, reason, err := w.Authorize(t.Context(), attributes(nil))
			message := ""
			if err != nil {
				message = err.Error()
			}
			if got != tt.want || reason != tt.reason || message != tt.err || opened != tt.failedOpen {
				t.Errorf("%s, %s: %v %q %q, failed open %d times", tt.name, version, got, reason, message, opened)
			}
			if s.Kind.Version != version || s.Kind.Kind != "SubjectAccessReview" || s.Kind.Group != "authorization.k8s.io" {
				t.Errorf("%s: asked for %v", tt.name, s.Kind)
			}
		}
	}
}

// The spec has all attributes of the request, in each version.
func TestSpec(t *testing.T) {
	full := func(a *authz.Attributes) {
		a.User = &request.User{Name: "eve", UID: "7", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v", "w"}}}
		a.Namespace, a.Group, a.Subresource, a.Name = "n", "apps", "status", "x"
	}
	selects := func(fields, labels string) func(*authz.Attributes) {
		return func(a *authz.Attributes) { a.FieldSelector, a.LabelSelector = fields, labels }
	}
	const pods = `{"resourceAttributes":{"verb":"get","version":"v1","resource":"pods"`
	for _, tt := range []struct {
		name    string
		change  func(*authz.Attributes)
		v1      string
		v1beta1 string // "" for the same
	}{
		{"an object", full,
			`{"resourceAttributes":{"namespace":"n","verb":"get","group":"apps","version":"v1","resource":"pods","subresource":"status","name":"x"},"user":"eve","groups":["g"],"extra":{"k":["v","w"]},"uid":"7"}`,
			`{"resourceAttributes":{"namespace":"n","verb":"get","group":"apps","version":"v1","resource":"pods","subresource":"status","name":"x"},"user":"eve","group":["g"],"extra":{"k":["v","w"]},"uid":"7"}`},
		{"a path", func(a *authz.Attributes) { a.Info = request.Info{Verb: "get", Path: "/logs"} },
			`{"nonResourceAttributes":{"path":"/logs","verb":"get"},"user":"eve"}`, ""},
		{"no user", func(a *authz.Attributes) { a.User = nil }, pods + `}}`, ""},
		{"fields", selects("spec.nodeName=a,metadata.name!=b", ""),
			pods + `,"fieldSelector":{"requirements":[{"key":"metadata.name","operator":"NotIn","values":["b"]},{"key":"spec.nodeName","operator":"In","values":["a"]}]}},"user":"eve"}`, ""},
		{"labels", selects("", "a=1,b!=2,c in (3),d notin (4),e,!f"),
			pods + `,"labelSelector":{"requirements":[{"key":"a","operator":"In","values":["1"]},{"key":"b","operator":"NotIn","values":["2"]},{"key":"c","operator":"In","values":["3"]},{"key":"d","operator":"NotIn","values":["4"]},{"key":"e","operator":"Exists"},{"key":"f","operator":"DoesNotExist"}]}},"user":"eve"}`, ""},
		{"what it has no words for selects more", selects("", "a>1"), pods + `},"user":"eve"}`, ""},
		{"what cannot be read selects all", selects("=,", "=="), pods + `},"user":"eve"}`, ""},
	} {
		for version, want := range map[string]string{"v1": tt.v1, "v1beta1": tt.v1beta1} {
			if want == "" {
				want = tt.v1
			}
			s := &reviewtest.Server{Status: "{}"}
			if _, _, err := newWebhook(s, func(o *Options) { o.Version = version }).Authorize(t.Context(), attributes(tt.change)); err != nil || s.Asked != want {
				t.Errorf("%s, %s: %v\n asked %s\n  want %s", tt.name, version, err, s.Asked, want)
			}
		}
	}
}

// Cached answers are valid for the same request only, until their TTL. Large requests and failures
// are not cached.
func TestCache(t *testing.T) {
	long := func(a *authz.Attributes) { a.Name = strings.Repeat("x", maxRemembered) }
	for _, tt := range []struct {
		name, status             string
		authorized, unauthorized time.Duration
		change                   func(*authz.Attributes)
		wait                     time.Duration
		times                    int
	}{
		{"allowed", `{"allowed":true}`, time.Minute, 0, nil, time.Second, 1},
		{"allowed long ago", `{"allowed":true}`, time.Minute, time.Hour, nil, time.Minute + time.Second, 2},
		{"allowed, and not to be remembered", `{"allowed":true}`, 0, time.Hour, nil, 0, 2},
		{"denied", `{"denied":true}`, 0, time.Minute, nil, time.Second, 1},
		{"denied long ago", `{"denied":true}`, time.Hour, time.Minute, nil, time.Minute + time.Second, 2},
		{"denied, and not to be remembered", `{"denied":true}`, time.Hour, 0, nil, 0, 2},
		{"no opinion", `{}`, 0, time.Minute, nil, time.Second, 1},
		{"not reached", "", time.Hour, time.Hour, nil, 0, 2},
		{"too long", `{"allowed":true}`, time.Hour, time.Hour, long, 0, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &reviewtest.Server{Status: tt.status}
			w := newWebhook(s, func(o *Options) { o.AuthorizedTTL, o.UnauthorizedTTL = tt.authorized, tt.unauthorized })
			first, _, _ := w.Authorize(t.Context(), attributes(tt.change))
			time.Sleep(tt.wait)
			if again, _, _ := w.Authorize(t.Context(), attributes(tt.change)); again != first || s.Times != tt.times {
				t.Errorf("%s: %v and %v, asked %d times, want %d", tt.name, first, again, s.Times, tt.times)
			}
		})
	}
	s := &reviewtest.Server{Status: `{"allowed":true}`}
	w := newWebhook(s, func(o *Options) { o.AuthorizedTTL = time.Hour })
	questions := []func(*authz.Attributes){
		nil,
		func(a *authz.Attributes) { a.Verb = "list" },
		func(a *authz.Attributes) { a.User = &request.User{Name: "bob"} },
		func(a *authz.Attributes) { a.User = &request.User{Name: "eve", Groups: []string{"g"}} },
		func(a *authz.Attributes) { a.User = &request.User{Name: "eve", UID: "7"} },
		func(a *authz.Attributes) {
			a.User = &request.User{Name: "eve", Extra: map[string][]string{"k": {"v"}}}
		},
		func(a *authz.Attributes) { a.Namespace = "n" },
		func(a *authz.Attributes) { a.Name = "x" },
		func(a *authz.Attributes) { a.Subresource = "log" },
		func(a *authz.Attributes) { a.LabelSelector = "a" },
		func(a *authz.Attributes) { a.FieldSelector = "a=b" },
		func(a *authz.Attributes) { a.Info = request.Info{Verb: "get", Path: "pods"} },
	}
	for range 2 {
		for _, change := range questions {
			if got, _, err := w.Authorize(t.Context(), attributes(change)); got != authz.Allow || err != nil {
				t.Errorf("%v %v", got, err)
			}
		}
	}
	if s.Times != len(questions) {
		t.Errorf("%d questions were asked %d times", len(questions), s.Times)
	}
}

// matches is a Matcher with a fixed result.
type matches struct {
	yes bool
	err error
}

func (m matches) Eval(context.Context, *authorizationv1.SubjectAccessReview) (bool, error) {
	return m.yes, m.err
}

// A request that does not match is not sent. After a failed evaluation the failure policy decides.
func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		match   matches
		onError authz.Decision
		want    authz.Decision
		times   int
	}{
		{matches{yes: true}, authz.Deny, authz.Allow, 1},
		{matches{}, authz.Deny, authz.NoOpinion, 0},
		{matches{err: errors.New("no such key")}, authz.Deny, authz.Deny, 0},
		{matches{err: errors.New("no such key")}, authz.NoOpinion, authz.NoOpinion, 0},
	} {
		s := &reviewtest.Server{Status: `{"allowed":true}`}
		w := newWebhook(s, func(o *Options) { o.Match, o.OnError = tt.match, tt.onError })
		if got, _, err := w.Authorize(t.Context(), attributes(nil)); got != tt.want || !errors.Is(err, tt.match.err) || s.Times != tt.times {
			t.Errorf("%+v: %v %v, asked %d times", tt, got, err, s.Times)
		}
	}
}

// A webhook cannot list rules.
func TestRulesFor(t *testing.T) {
	_, incomplete, err := authz.RulesFor(t.Context(), newWebhook(&reviewtest.Server{}, nil), &request.User{}, "")
	if !incomplete || err == nil || err.Error() != "webhook authorizer does not support user rule resolution" {
		t.Errorf("%v %v", incomplete, err)
	}
}

func TestCheckVersion(t *testing.T) {
	for version, want := range map[string]string{"v1": "", "v1beta1": "", "v2": `unsupported webhook authorizer version "v2", supported versions are "v1", "v1beta1"`} {
		if err := CheckVersion(version); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", version, err, want)
		}
	}
}
