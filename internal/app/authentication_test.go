package app

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/access/authn/oidc/oidctest"
)

func newIssuer(t *testing.T) *oidctest.Issuer {
	t.Helper()
	i, err := oidctest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Close)
	return i
}

// tokenBy returns a token of an issuer for a user.
func tokenBy(t *testing.T, i *oidctest.Issuer, user string) string {
	t.Helper()
	token, err := i.Token(map[string]any{"aud": "anykind", "sub": user})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// until repeats a request with a token until the response contains a text.
func until(t *testing.T, a *App, token, want string) {
	t.Helper()
	anonymous := client(t, a, nil)
	var body string
	if !poll(t, func() bool {
		_, body = ask(t, anonymous, "GET", a.URL()+"/api/v1/nodes", token, "")
		return strings.Contains(body, want)
	}) {
		t.Fatalf("%s, want %s", body, want)
	}
}

// Tokens of an issuer are accepted after its discovery, also after a change of the file. The file
// also configures anonymous requests.
func TestAuthenticationConfig(t *testing.T) {
	one, two := newIssuer(t), newIssuer(t)
	text := func(i *oidctest.Issuer, prefix string) []byte {
		ca, err := json.Marshal(string(i.CA()))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil, `apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /livez}]}
jwt:
- issuer: {url: %q, audiences: [anykind], certificateAuthority: %s}
  claimMappings: {username: {claim: sub, prefix: %q}}
`, i.URL, ca, prefix)
	}
	file := write(t, filepath.Join(t.TempDir(), "authentication.yaml"), text(one, "one:"))
	a := start(t, Options{Authentication: Authentication{ConfigFile: file}})
	defer stop(t, a)
	until(t, a, tokenBy(t, one, "eve"), `User \"one:eve\" cannot list`)
	anonymous := client(t, a, nil)
	for path, want := range map[string]int{"/livez": 200, "/version": 401, "/api/v1/nodes": 401} {
		if code, body := ask(t, anonymous, "GET", a.URL()+path, "", ""); code != want {
			t.Errorf("%s: %d %s, want %d", path, code, body, want)
		}
	}
	if code, _ := ask(t, anonymous, "GET", a.URL()+"/api/v1/nodes", tokenBy(t, two, "eve"), ""); code != 401 {
		t.Errorf("of an issuer that is not named: %d", code)
	}
	write(t, file, text(two, "two:"))
	until(t, a, tokenBy(t, two, "eve"), `User \"two:eve\" cannot list`)
	until(t, a, tokenBy(t, one, "bob"), `"Unauthorized"`)
	code, metrics := ask(t, client(t, a, admin(t, a)), "GET", a.URL()+"/metrics", "", "")
	if want := `apiserver_authentication_config_controller_automatic_reloads_total{apiserver_id_hash="sha256:`; code != 200 || !strings.Contains(metrics, want) {
		t.Errorf("%d, there is no %s", code, want)
	}
}

// The webhook receives only tokens that no other authenticator recognizes, and its answers are
// cached.
func TestTokenWebhook(t *testing.T) {
	asked := map[string]int{}
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent struct{ Spec struct{ Token string } }
		_ = json.NewDecoder(r.Body).Decode(&sent)
		asked[sent.Spec.Token]++
		switch user, ok := strings.CutPrefix(sent.Spec.Token, "good-"); {
		case ok:
			fmt.Fprintf(w, `{"apiVersion":"authentication.k8s.io/v1beta1","kind":"TokenReview","status":{"authenticated":true,"user":{"username":%q}}}`, user)
		default:
			fmt.Fprint(w, `{"apiVersion":"authentication.k8s.io/v1beta1","kind":"TokenReview"}`)
		}
	}))
	defer hook.Close()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	write(t, filepath.Join(dir, "ca.pem"), ca)
	config := write(t, filepath.Join(dir, "kubeconfig"), fmt.Appendf(nil, `
clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.pem}}]
contexts: [{name: x, context: {cluster: c}}]
current-context: x
`, hook.URL+"/authenticate"))
	a := start(t, Options{
		TokenFile:      write(t, filepath.Join(dir, "tokens"), []byte("hush,bob,2,devs\n")),
		Authentication: Authentication{Webhook: TokenWebhook{ConfigFile: config, Version: "v1beta1", CacheTTL: time.Hour}},
	})
	defer stop(t, a)
	anonymous := client(t, a, nil)
	for range 3 {
		for token, want := range map[string]string{"good-eve": `User \"eve\" cannot list`, "bad": `"Unauthorized"`, "hush": `User \"bob\" cannot list`} {
			if _, body := ask(t, anonymous, "GET", a.URL()+"/api/v1/nodes", token, ""); !strings.Contains(body, want) {
				t.Errorf("%s: %s", token, body)
			}
		}
	}
	if want := map[string]int{"good-eve": 1, "bad": 1}; fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("asked %v, want %v", asked, want)
	}
}
