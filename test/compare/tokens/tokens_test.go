// Package tokens requests tokens of service accounts from a kube-apiserver and anykind, which have the
// same keys. It uses the tokens and forgeries of them, and compares the responses.
package tokens

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

var reference = flag.String("reference", "", "compare with a server that is started if it is \"start\"")

// longest is a flag of both servers.
const longest = "--service-account-max-token-expiration=5000000s"

// controllers disables the controllers of anykind that kube-apiserver leaves to
// kube-controller-manager. plugins change or reject pods, which is out of scope.
const (
	controllers = "--controllers=-serviceaccount-controller,-serviceaccount-token-controller,-root-ca-certificate-publisher-controller,-garbage-collector-controller"
	plugins     = "--disable-admission-plugins=ServiceAccount,DefaultTolerationSeconds,Priority,TaintNodesByCondition,PodTopologyLabels,PodResizeValidator,NodeDeclaredFeatureValidator"
)

func TestTokens(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	dir := t.TempDir()
	theirs := filepath.Join(dir, "theirs", "service-account.key") // created with their server
	keys := newKeys(t, dir)
	// Stop, not the context of the test, ends the servers.
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: "start", Store: "memory", Dir: dir,
		Theirs: append([]string{plugins, longest}, keys.flags...),
		Ours: append([]string{controllers, plugins, longest, "--service-account-issuer=https://localhost", "--service-account-key-file=" + theirs},
			keys.flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	both := &pair{T: t, keys: keys}
	for i, client := range []*wire.Client{p.Theirs, p.Ours} {
		both.sides[i] = &side{client: client, judge: judge.NewServer("tokens"), tokens: map[string]string{}}
	}
	for _, s := range setup {
		both.do(s)
	}
	for _, s := range asked {
		both.do(s)
	}
	both.reviews = both.sides[1].send(t, step{method: "GET", path: "/apis/authentication.k8s.io/v1"}).Code == http.StatusOK
	for _, s := range used {
		both.do(s)
		both.use(s.keep)
	}
	both.attack()
	for _, s := range ended {
		both.do(s)
		if s.as != "" {
			both.ended(s.as)
		}
	}
	both.legacy()
	t.Logf("%d answers, %d uses of tokens; TokenReviews compared: %v", both.answers, both.uses, both.reviews)
}

// Tokens for webhooks, by the gate APIServerWebhookAuthenticationToken.
func TestTokensForWebhooks(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			gates := fmt.Sprintf("--feature-gates=APIServerWebhookAuthenticationToken=%t", on)
			p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
				Reference: "start", Store: "memory", Dir: t.TempDir(),
				Theirs: []string{plugins, gates, "--api-audiences=https://localhost,hook"},
				Ours:   []string{controllers, plugins, gates, "--service-account-issuer=https://localhost", "--api-audiences=https://localhost,hook"},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Stop)
			both := &pair{T: t}
			for i, client := range []*wire.Client{p.Theirs, p.Ours} {
				both.sides[i] = &side{client: client, judge: judge.NewServer("tokens"), tokens: map[string]string{}}
			}
			for _, steps := range [][]step{setup, hooks, forHooks} {
				for _, s := range steps {
					both.do(s)
				}
			}
		})
	}
}

// A pair is both servers, theirs first.
type pair struct {
	*testing.T
	sides   [2]*side
	keys    *keys
	reviews bool // ours has TokenReviews

	answers, uses int
}

// A side is one of the servers.
type side struct {
	client *wire.Client
	judge  *judge.Server
	tokens map[string]string // by name
}

// A step is a request by the administrator in the namespace default. <uid:PATH> in a body stands for
// the uid of the object at a path.
type step struct {
	method, path string
	body         string // YAML
	keep         string // name for the token in the response
	as           string // name of the token to use afterwards
}

const base = "/api/v1/namespaces/default/"

// do sends a step to both and compares the responses.
func (p *pair) do(s step) {
	p.Helper()
	var said [2]*judge.Normal
	for i, x := range p.sides {
		a := x.send(p.T, s)
		if token := x.open(a); s.keep != "" {
			x.tokens[s.keep] = token
		}
		said[i] = x.judge.Normal(a)
	}
	p.compare(s.method+" "+s.path+"\n"+s.body, said)
}

func (p *pair) compare(what string, said [2]*judge.Normal) {
	p.Helper()
	p.answers++
	for _, d := range judge.Compare(said[0], said[1]) {
		p.Errorf("%s: %s\n\tKubernetes %s\n\tanykind    %s", what, d.Place, d.Theirs, d.Ours)
	}
}

var placeholder = regexp.MustCompile(`<uid:([^>]+)>`)

// send sends a step as the administrator.
func (x *side) send(t *testing.T, s step, header ...wire.Field) *wire.Answer {
	t.Helper()
	path := s.path
	if !strings.HasPrefix(path, "/") {
		path = base + path
	}
	out := wire.Step{Method: s.method, Path: path, Header: header}
	if s.body != "" {
		text := placeholder.ReplaceAllStringFunc(s.body, func(found string) string {
			var object struct{ Metadata struct{ UID string } }
			a := x.send(t, step{method: "GET", path: placeholder.FindStringSubmatch(found)[1]})
			if err := json.Unmarshal(a.Body, &object); err != nil {
				t.Fatal(err)
			}
			return object.Metadata.UID
		})
		body, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		out.Body = body
		media := "application/json"
		if s.method == http.MethodPatch {
			media = "application/merge-patch+json"
		}
		out.Header = append(out.Header, wire.Field{Name: "Content-Type", Value: media})
	}
	return x.client.Do(t.Context(), out)
}

// open replaces the token in a response by its decoded content, and returns the token.
func (x *side) open(a *wire.Answer) string {
	var body map[string]any
	if json.Unmarshal(a.Body, &body) != nil {
		return ""
	}
	status, _ := body["status"].(map[string]any)
	token, _ := status["token"].(string)
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	header, claims := part(parts[0]), part(parts[1])
	issued, _ := claims["iat"].(float64)
	for _, name := range []string{"iat", "nbf", "exp"} {
		claims[name] = fmt.Sprint(claims[name].(float64) - issued)
	}
	if k, _ := claims["kubernetes.io"].(map[string]any); k["warnafter"] != nil {
		k["warnafter"] = fmt.Sprint(k["warnafter"].(float64) - issued)
	}
	claims["jti"] = len(claims["jti"].(string))
	status["token"] = map[string]any{"header": header, "claims": claims}
	ends, err := time.Parse(time.RFC3339, fmt.Sprint(status["expirationTimestamp"]))
	if err == nil {
		status["expirationTimestamp"] = fmt.Sprint(float64(ends.Unix()) - issued)
	}
	a.Body, _ = json.Marshal(body)
	return token
}

// part decodes a part of a token.
func part(text string) (out map[string]any) {
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		return nil
	}
	return out
}

// use sends requests with a named token, and a TokenReview for it.
func (p *pair) use(name string) {
	p.Helper()
	for range 2 {
		var said, reviewed [2]*judge.Normal
		for i, x := range p.sides {
			token := x.tokens[name]
			said[i] = x.judge.Normal(x.send(p.T, step{method: "GET", path: "/api/v1/nodes/forbidden"}, wire.Field{Name: "Authorization", Value: "Bearer " + token}))
			reviewed[i] = said[i]
			if p.reviews {
				reviewed[i] = x.review(p.T, token)
			}
		}
		p.compare("GET with the token "+name, said)
		p.compare("review of the token "+name, reviewed)
		p.uses++
	}
}

// review sends a TokenReview to a server. It omits the credential id, which differs.
func (x *side) review(t *testing.T, token string) *judge.Normal {
	t.Helper()
	a := x.send(t, step{
		method: "POST", path: "/apis/authentication.k8s.io/v1/tokenreviews",
		body: "apiVersion: authentication.k8s.io/v1\nkind: TokenReview\nspec: {token: " + string(must(json.Marshal(token))) + "}\n",
	})
	a.Body = regexp.MustCompile(`JTI=[0-9a-f-]+`).ReplaceAll(a.Body, []byte("JTI"))
	a.Body = []byte(strings.ReplaceAll(string(a.Body), token, "TOKEN"))
	return x.judge.Normal(a)
}

func must(data []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return data
}

// legacy uses tokens of Secrets.
func (p *pair) legacy() {
	p.Helper()
	put := func(name, labels string, change func(map[string]any)) {
		p.Helper()
		for _, x := range p.sides {
			claims := map[string]any{
				"iss": "kubernetes/serviceaccount", "sub": "system:serviceaccount:default:old",
				"kubernetes.io/serviceaccount/namespace":            "default",
				"kubernetes.io/serviceaccount/secret.name":          name,
				"kubernetes.io/serviceaccount/service-account.name": "old",
				"kubernetes.io/serviceaccount/service-account.uid":  x.uid(p.T, "serviceaccounts/old"),
			}
			if change != nil {
				change(claims)
			}
			x.tokens[name] = p.keys.sign(p.T, map[string]any{"alg": "ES256", "kid": p.keys.id}, claims)
			x.send(p.T, step{method: "POST", path: "secrets", body: `
apiVersion: v1
kind: Secret
metadata: {name: ` + name + `, annotations: {kubernetes.io/service-account.name: old}, labels: {` + labels + `}}
type: kubernetes.io/service-account-token
stringData: {token: ` + x.tokens[name] + `}
`})
		}
	}
	secret := func(name, labels string, change func(map[string]any)) {
		p.Helper()
		put(name, labels, change)
		p.use(name)
		// The day of use is the same on both servers, except around midnight.
		p.compareLabels(name)
	}
	p.do(step{method: "POST", path: "serviceaccounts", body: "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: old}\nsecrets: [{name: listed}]\n"})
	secret("listed", "", nil)
	secret("manual", "kubernetes.io/legacy-token-last-used: '2001-02-03'", nil)
	secret("invalid", "kubernetes.io/legacy-token-invalid-since: '2001-02-03'", nil)
	for _, name := range []string{"namespace", "secret.name", "service-account.name", "service-account.uid"} {
		secret("without-"+name, "", func(c map[string]any) { delete(c, "kubernetes.io/serviceaccount/"+name) })
	}
	secret("other-subject", "", func(c map[string]any) { c["sub"] = "system:serviceaccount:default:other" })
	secret("no-subject", "", func(c map[string]any) { delete(c, "sub") })
	secret("other-uid", "", func(c map[string]any) { c["kubernetes.io/serviceaccount/service-account.uid"] = "x" })
	secret("other-issuer", "", func(c map[string]any) { c["iss"] = "https://localhost" })
	secret("expired", "", func(c map[string]any) { c["exp"] = 1 })
	secret("for-others", "", func(c map[string]any) { c["aud"] = []string{"others"} })
	for _, name := range []string{"changed", "removed", "orphaned"} {
		put(name, "", nil)
	}
	p.patch("secrets/changed", "data: {token: eA==}")
	p.ended("changed")
	p.patch("secrets/removed", "")
	p.ended("removed")
	p.patch("serviceaccounts/old", "")
	p.ended("orphaned")
}

// ended uses a token that may just have become invalid. If anykind rejects it, Kubernetes gets time to
// follow: a moment, or ten seconds if its cache has the token.
func (p *pair) ended(name string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	defer cancel()
	refuses := func(x *side) bool {
		header := []wire.Field{{Name: "Authorization", Value: "Bearer " + x.tokens[name]}}
		return x.client.Do(ctx, wire.Step{Method: "GET", Path: "/api/v1/nodes/forbidden", Header: header}).Code == http.StatusUnauthorized
	}
	for refuses(p.sides[1]) && !refuses(p.sides[0]) {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			p.Fatalf("Kubernetes goes on to believe the token %s", name)
		}
	}
	p.use(name)
}

// patch patches an object, or deletes it.
func (p *pair) patch(path, body string) {
	p.Helper()
	s := step{method: http.MethodPatch, path: path, body: body}
	if body == "" {
		s.method = http.MethodDelete
	}
	for _, x := range p.sides {
		if a := x.send(p.T, s); a.Code != http.StatusOK {
			p.Fatalf("%s: %d %s", path, a.Code, a.Body)
		}
	}
}

// compareLabels compares the labels of a Secret.
func (p *pair) compareLabels(name string) {
	p.Helper()
	var labels [2]string
	for i, x := range p.sides {
		var object struct {
			Metadata struct{ Labels map[string]string }
		}
		if err := json.Unmarshal(x.send(p.T, step{method: "GET", path: "secrets/" + name}).Body, &object); err != nil {
			p.Fatal(err)
		}
		labels[i] = fmt.Sprint(object.Metadata.Labels)
	}
	if labels[0] != labels[1] {
		p.Errorf("labels of the Secret %s: Kubernetes %s, anykind %s", name, labels[0], labels[1])
	}
}

func (x *side) uid(t *testing.T, path string) string {
	t.Helper()
	var object struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(x.send(t, step{method: "GET", path: path}).Body, &object); err != nil {
		t.Fatal(err)
	}
	return object.Metadata.UID
}

// The discovery documents of the issuer are equal except for the address.
func TestDiscovery(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	dir := t.TempDir()
	keys := newKeys(t, dir)
	const at = "--service-account-jwks-uri=https://keys.example/keys"
	p, err := servers.Start(context.WithoutCancel(t.Context()), servers.Options{
		Reference: "start", Store: "memory", Dir: dir, Theirs: append([]string{at}, keys.flags...),
		Ours: append([]string{at, "--service-account-issuer=https://localhost", "--service-account-key-file=" + filepath.Join(dir, "theirs", "service-account.key")}, keys.flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	for _, s := range []wire.Step{
		{Method: "GET", Path: "/.well-known/openid-configuration"},
		{Method: "GET", Path: "/.well-known/openid-configuration/"},
		{Method: "GET", Path: "/openid/v1/jwks"},
		{Method: "GET", Path: "/openid/v1/jwks?x=y"},
		{Method: "GET", Path: "/openid/v1/jwks", Header: []wire.Field{{Name: "Accept", Value: "application/jwk-set+json"}}},
		{Method: "GET", Path: "/openid/v1/jwks", Header: []wire.Field{{Name: "Accept", Value: "text/plain"}}},
		{Method: "HEAD", Path: "/openid/v1/jwks"},
		{Method: "POST", Path: "/openid/v1/jwks"},
	} {
		theirs, ours := judge.NewServer("d").Normal(p.Theirs.Do(t.Context(), s)), judge.NewServer("d").Normal(p.Ours.Do(t.Context(), s))
		for _, d := range judge.Compare(theirs, ours) {
			t.Errorf("%s: %s\n\tKubernetes %s\n\tanykind    %s", s, d.Place, d.Theirs, d.Ours)
		}
	}
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
