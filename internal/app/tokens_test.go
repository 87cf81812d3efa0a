package app

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/store/memkv"
)

// must sends a request of the administrator, and requires success.
func must(t *testing.T, a *App, method, path, body string) string {
	t.Helper()
	code, answer := ask(t, client(t, a, admin(t, a)), method, a.URL()+path, "", body)
	if code >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}

const (
	inDefault = "/api/v1/namespaces/default"
	robot     = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}`
)

// tokenOf requests a token of the account robot.
func tokenOf(t *testing.T, a *App, spec string) string {
	t.Helper()
	var request struct{ Status struct{ Token string } }
	answer := must(t, a, "POST", inDefault+"/serviceaccounts/robot/token", `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":`+spec+`}`)
	if err := json.Unmarshal([]byte(answer), &request); err != nil || request.Status.Token == "" {
		t.Fatal(answer, err)
	}
	return request.Status.Token
}

// counts reports whether the token authenticates as the account robot, which has no rights.
func counts(t *testing.T, a *App, token string) bool {
	t.Helper()
	code, body := ask(t, client(t, a, nil), "GET", a.URL()+inDefault+"/secrets", token, "")
	switch code {
	case http.StatusUnauthorized:
		return false
	case http.StatusForbidden:
		if strings.Contains(body, "system:serviceaccount:default:robot") {
			return true
		}
	}
	t.Fatal(code, body)
	return false
}

// A token is invalid from the response to the write that deletes an object it depends on.
func TestTokenEnds(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	must(t, a, "POST", inDefault+"/serviceaccounts", robot)
	for _, tt := range []struct{ kind, path, body, collection string }{
		{"Pod", inDefault + "/pods/p", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"serviceAccountName":"robot","terminationGracePeriodSeconds":0,"containers":[{"name":"c","image":"i"}]}}`, inDefault + "/pods"},
		{"Secret", inDefault + "/secrets/p", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"p"}}`, inDefault + "/secrets"},
		{"Node", "/api/v1/nodes/p", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"p"}}`, "/api/v1/nodes"},
	} {
		must(t, a, "POST", tt.collection, tt.body)
		token := tokenOf(t, a, `{"boundObjectRef":{"apiVersion":"v1","kind":"`+tt.kind+`","name":"p"}}`)
		if !counts(t, a, token) {
			t.Errorf("one that is bound to a %s does not count", tt.kind)
		}
		must(t, a, "DELETE", tt.path, "")
		if counts(t, a, token) {
			t.Errorf("one counts whose %s is gone", tt.kind)
		}
		must(t, a, "POST", tt.collection, tt.body)
		if counts(t, a, token) {
			t.Errorf("one counts whose %s is another one", tt.kind)
		}
	}
	token := tokenOf(t, a, "{}")
	if !counts(t, a, token) {
		t.Error("one that is bound to nothing does not count")
	}
	must(t, a, "DELETE", inDefault+"/serviceaccounts/robot", "")
	if counts(t, a, token) {
		t.Error("one counts whose account is gone")
	}
	must(t, a, "POST", inDefault+"/serviceaccounts", robot)
	if counts(t, a, token) {
		t.Error("one counts whose account is another one")
	}
}

// The key is generated once. Its file is readable by the owner only, because the key can sign
// tokens.
func TestTokensAfterRestart(t *testing.T) {
	dir := t.TempDir()
	a := start(t, Options{Dir: dir})
	must(t, a, "POST", inDefault+"/serviceaccounts", robot)
	token := tokenOf(t, a, "{}")
	stop(t, a)
	is, err := os.Stat(filepath.Join(dir, "pki", "sa.key"))
	if err != nil || is.Mode().Perm() != 0o600 {
		t.Error(is, err)
	}
	a = start(t, Options{Dir: dir})
	defer stop(t, a)
	if !counts(t, a, token) {
		t.Error("it does not count any more")
	}
}

// Servers that share a store and a key accept each other's tokens. A deletion at one server
// invalidates a token at the other.
func TestTokensOfSeveralServers(t *testing.T) {
	keys := filepath.Join(t.TempDir(), "pki")
	if err := os.MkdirAll(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := serviceaccount.OpenKeys(keys); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(keys, "sa.key")
	o := Options{
		Backend:         memkv.New(memkv.Options{}),
		ServiceAccounts: serviceaccount.Options{KeyFiles: []string{key}, SigningKeyFile: key},
	}
	first, second := start(t, o), start(t, o)
	defer stop(t, second)
	defer stop(t, first)
	must(t, first, "POST", inDefault+"/serviceaccounts", robot)
	token := tokenOf(t, second, "{}")
	for range 2 {
		if !counts(t, first, token) || !counts(t, second, token) {
			t.Error("one does not take it")
		}
	}
	must(t, first, "DELETE", inDefault+"/serviceaccounts/robot", "")
	if counts(t, second, token) {
		t.Error("it counts at the other one")
	}
}

// Discovery is served only for an issuer with a discoverable URL.
func TestDiscoveryOfTheIssuer(t *testing.T) {
	for issuer, want := range map[string]int{
		"https://issuer.example":     http.StatusOK,
		"robots":                     http.StatusNotFound,
		"http://issuer.example":      http.StatusNotFound,
		"https://issuer.example?x=y": http.StatusNotFound,
	} {
		a := start(t, Options{ServiceAccounts: serviceaccount.Options{Issuers: []string{issuer}}})
		must(t, a, "POST", inDefault+"/serviceaccounts", robot)
		if !counts(t, a, tokenOf(t, a, "{}")) {
			t.Error("tokens of the issuer", issuer, "do not count")
		}
		for _, path := range []string{"/.well-known/openid-configuration", "/openid/v1/jwks"} {
			code, body := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+path, "", "")
			if code != want || strings.Contains(body, "PRIVATE") || strings.Contains(body, `"d":`) {
				t.Errorf("%s: %s: %d %s", issuer, path, code, body)
			}
			if strings.Contains(must(t, a, "GET", "/", ""), path) != (want == http.StatusOK) {
				t.Errorf("%s: the list of paths is wrong about %s", issuer, path)
			}
		}
		stop(t, a)
	}
}

// A requested lifetime above the maximum is reduced.
func TestLongestToken(t *testing.T) {
	a := start(t, Options{ServiceAccounts: serviceaccount.Options{MaxExpiration: 7200e9}})
	defer stop(t, a)
	must(t, a, "POST", inDefault+"/serviceaccounts", robot)
	r, err := http.NewRequestWithContext(t.Context(), "POST", a.URL()+inDefault+"/serviceaccounts/robot/token",
		strings.NewReader(`{"spec":{"expirationSeconds":7201}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := client(t, a, admin(t, a)).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var request struct {
		Spec struct{ ExpirationSeconds int }
	}
	if err := json.NewDecoder(answer.Body).Decode(&request); err != nil || request.Spec.ExpirationSeconds != 7200 {
		t.Error(request, err)
	}
	if got := answer.Header.Get("Warning"); got != `299 - "requested expiration of 7201 seconds shortened to 7200 seconds"` {
		t.Error(got)
	}
}

// Empty lists of a review have no manager, as in Kubernetes.
func TestEmptyListsOfReviewsHaveNoManager(t *testing.T) {
	a := start(t, Options{})
	defer stop(t, a)
	for path, body := range map[string]string{
		"/apis/authentication.k8s.io/v1/tokenreviews":        `{"spec":{"audiences":[],"token":"b"}}`,
		"/apis/authorization.k8s.io/v1/subjectaccessreviews": `{"spec":{"user":"u","groups":[],"nonResourceAttributes":{"path":"/","verb":"get"}}}`,
	} {
		answer := must(t, a, "POST", path, body)
		if strings.Contains(answer, "f:audiences") || strings.Contains(answer, "f:groups") || !strings.Contains(answer, "f:spec") {
			t.Error(path, answer)
		}
	}
}
