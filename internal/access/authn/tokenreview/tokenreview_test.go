package tokenreview

import (
	"encoding/json"
	"reflect"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/review/reviewtest"
	"github.com/anykind/anykind/internal/object/request"
)

// A response is accepted if it is for a wanted audience.
func TestWebhook(t *testing.T) {
	eve := &request.User{Name: "eve"}
	const good = `{"authenticated":true,"user":{"username":"eve"}}`
	for _, tt := range []struct {
		name           string
		server, wanted []string // audiences
		status         string
		want           *authn.TokenAnswer
		err            string
		asked          string
	}{
		{"good", nil, nil, good, &authn.TokenAnswer{User: eve}, "", `{"token":"t"}`},
		{"all of a user", nil, nil, `{"authenticated":true,"user":{"username":"eve","uid":"7","groups":["a"],"extra":{"k":["v"]}}}`,
			&authn.TokenAnswer{User: &request.User{Name: "eve", UID: "7", Groups: []string{"a"}, Extra: map[string][]string{"k": {"v"}}}}, "", `{"token":"t"}`},
		{"bad", nil, nil, `{}`, nil, "", `{"token":"t"}`},
		{"bad with a reason", nil, nil, `{"error":"expired"}`, nil, "expired", `{"token":"t"}`},
		{"a user who is not authenticated", nil, nil, `{"user":{"username":"eve"}}`, nil, "", `{"token":"t"}`},
		{"for the server, of which nothing is said", []string{"a", "b"}, nil, good, &authn.TokenAnswer{User: eve, Audiences: []string{"a", "b"}}, "", `{"token":"t","audiences":["a","b"]}`},
		{"for the server", []string{"a", "b"}, nil, `{"authenticated":true,"user":{"username":"eve"},"audiences":["x","b"]}`,
			&authn.TokenAnswer{User: eve, Audiences: []string{"b"}}, "", `{"token":"t","audiences":["a","b"]}`},
		{"for others", []string{"a"}, nil, `{"authenticated":true,"user":{"username":"eve"},"audiences":["x"]}`, nil, "", `{"token":"t","audiences":["a"]}`},
		{"wanted for others", []string{"a"}, []string{"x"}, `{"authenticated":true,"user":{"username":"eve"},"audiences":["x"]}`,
			&authn.TokenAnswer{User: eve, Audiences: []string{"x"}}, "", `{"token":"t","audiences":["x"]}`},
		{"wanted for others, of which nothing is said", []string{"a"}, []string{"x"}, good, nil, "", `{"token":"t","audiences":["x"]}`},
		{"not reached", nil, nil, "", nil, "not reached", `{"token":"t"}`},
	} {
		for _, version := range []string{"v1", "v1beta1"} {
			s := &reviewtest.Server{Status: tt.status}
			a, ok, err := New(s, version, tt.server).AuthenticateToken(t.Context(), "t", tt.wanted)
			if ok != (tt.want != nil) || ok && !reflect.DeepEqual(a, tt.want) || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("%s, %s: %+v, %v, want %+v, %s", tt.name, version, a, err, tt.want, tt.err)
			}
			if s.Asked != tt.asked || s.Kind.Version != version || s.Kind.Kind != "TokenReview" {
				t.Errorf("%s, %s: asked %s of %s, want %s", tt.name, version, s.Asked, s.Kind, tt.asked)
			}
		}
	}
}

// The program sends v1beta1 with the Go types of v1, so that the package of v1beta1 is not linked.
func TestVersionsHaveTheSameFields(t *testing.T) {
	sent, err := json.Marshal(authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: "t", Audiences: []string{"a"}},
		Status: authenticationv1.TokenReviewStatus{
			Authenticated: true, Audiences: []string{"a"}, Error: "e",
			User: authenticationv1.UserInfo{Username: "eve", UID: "7", Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var beta authenticationv1beta1.TokenReview
	if err := json.Unmarshal(sent, &beta); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(beta); err != nil || string(got) != string(sent) {
		t.Errorf("v1beta1: %s, %v, want %s", got, err, sent)
	}
}

func TestCheckVersion(t *testing.T) {
	for version, want := range map[string]string{"v1": "", "v1beta1": "", "v2": `unsupported authentication webhook version "v2", supported versions are "v1", "v1beta1"`} {
		if err := CheckVersion(version); err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %s", version, err, want)
		}
	}
}
