// Package users sends certificates, headers and tokens to kube-apiserver and to anykind, started with
// the same flags and files, and compares the authenticated users: with valid credentials, and with
// forged ones.
package users

import (
	"bytes"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// expired returns a client certificate that expired a minute ago.
func expired(t *testing.T, by *pki.Pair, name string) *pki.Pair {
	t.Helper()
	return pkitest.Sign(t, by, x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, NotAfter: time.Now().Add(-time.Minute),
	})
}

// forServer returns a certificate without the usage for clients.
func forServer(t *testing.T, by *pki.Pair, name string) *pki.Pair {
	t.Helper()
	return pkitest.Sign(t, by, x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

// An issuer signs JSON web tokens.
type issuer struct {
	*httptest.Server
	keys map[string]*rsa.PrivateKey // by id; the one called hidden is not published
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{keys: map[string]*rsa.PrivateKey{}}
	for _, id := range []string{"k", "hidden"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			t.Fatal(err)
		}
		i.keys[id] = key
	}
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/keys":
			public := i.keys["k"].PublicKey
			fmt.Fprintf(w, `{"keys":[{"kty":"RSA","use":"sig","kid":"k","n":%q,"e":"AQAB"}]}`, encode(public.N.Bytes()))
		case "/groups":
			fmt.Fprint(w, i.token("RS256", "k", map[string]any{"groups": []string{"far"}}))
		case "/loop":
			fmt.Fprint(w, i.token("RS256", "k", i.distributed("/loop")))
		default:
			fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, i.URL, i.URL+"/keys")
		}
	}))
	t.Cleanup(i.Close)
	return i
}

// distributed returns claims that refer to another source for the groups.
func (i *issuer) distributed(path string) map[string]any {
	return map[string]any{"_claim_names": map[string]any{"groups": "s"}, "_claim_sources": map[string]any{"s": map[string]any{"endpoint": i.URL + path}}}
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// token returns a token that is valid for an hour, with changed claims; nil removes a claim.
func (i *issuer) token(algorithm, id string, changes map[string]any) string {
	claims := map[string]any{"iss": i.URL, "aud": "kube", "sub": "eve", "exp": time.Now().Add(time.Hour).Unix(), "level": 3, "jti": "t-1"}
	for name, value := range changes {
		claims[name] = value
		if value == nil {
			delete(claims, name)
		}
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		panic(err)
	}
	signed := encode(fmt.Appendf(nil, `{"alg":%q,"kid":%q}`, algorithm, id)) + "." + encode(payload)
	key := i.keys[id]
	if key == nil {
		key = i.keys["hidden"]
	}
	var signature []byte
	sum := sha256.Sum256([]byte(signed))
	switch algorithm {
	case "RS256":
		signature, err = rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	case "PS256":
		signature, err = rsa.SignPSS(rand.Reader, key, crypto.SHA256, sum[:], nil)
	case "HS256": // with a publicly known secret
		var der []byte
		der, err = x509.MarshalPKIXPublicKey(key.Public())
		mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		mac.Write([]byte(signed))
		signature = mac.Sum(nil)
	}
	if err != nil {
		panic(err)
	}
	return signed + "." + encode(signature)
}

func serverCA(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// write writes a file atomically.
func write(t *testing.T, file string, data []byte) string {
	t.Helper()
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	return file
}

// newWebhook starts a webhook for TokenReviews of v1 that accepts tokens like hook-NAME.
func newWebhook(t *testing.T) *httptest.Server {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var sent struct {
			APIVersion string
			Spec       struct {
				Token     string
				Audiences []string
			}
		}
		_ = json.NewDecoder(r.Body).Decode(&sent)
		status := `"authenticated":false`
		switch sent.Spec.Token {
		case "hook-eve":
			status = `"authenticated":true,"user":{"username":"hooked","uid":"9","groups":["a","b"],"extra":{"k":["v"]}}`
		case "hook-master":
			status = `"authenticated":true,"user":{"username":"m","groups":["system:masters"]}`
		case "hook-others":
			status = `"authenticated":true,"audiences":["others"],"user":{"username":"eve"}`
		case "hook-error":
			status = `"error":"not today"`
		case "hook-500":
			w.WriteHeader(http.StatusBadGateway)
			return
		case "hook-nonsense":
			fmt.Fprint(w, "nonsense")
			return
		}
		fmt.Fprintf(w, `{"apiVersion":%q,"kind":"TokenReview","status":{%s}}`, sent.APIVersion, status)
	}))
	t.Cleanup(s.Close)
	return s
}

// A who is the credentials of a client.
type who struct {
	as     *pki.Pair // certificate
	header []wire.Field
	one    bool // over HTTP/1, as for a websocket
}

// socket offers a token as a subprotocol of a websocket, besides others.
func socket(token, others string) who {
	w := who{one: true}
	return w.with("Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==",
		"Sec-WebSocket-Protocol", "base64url.bearer.authorization.k8s.io."+encode([]byte(token))+others)
}

func bearing(token string) who {
	return who{header: []wire.Field{{Name: "Authorization", Value: "Bearer " + token}}}
}

// with adds headers, as names and values.
func (w who) with(headers ...string) who {
	for i := 0; i < len(headers); i += 2 {
		w.header = append(w.header, wire.Field{Name: headers[i], Value: headers[i+1]})
	}
	return w
}

// ask returns a server's response to a get of a node with these credentials. If the server has
// SelfSubjectReviews, it adds the user.
func ask(t *testing.T, ctx context.Context, host string, reviews bool, w who) string {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if w.as != nil {
		cert := *w.as.TLS()
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	c, err := wire.NewClient("https://"+host, config, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	header := append([]wire.Field{}, w.header...)
	if len(header) == 0 || header[0].Name != "Authorization" {
		header = append(header, wire.Field{Name: "Authorization", Value: ""})
	}
	a := c.Do(ctx, wire.Step{Method: "GET", Path: "/api/v1/nodes/n", Header: header, HTTP1: w.one})
	var status struct{ Message string }
	_ = json.Unmarshal(a.Body, &status)
	said := fmt.Sprintf("%d %s%s", a.Code, a.Failed, status.Message)
	if !reviews || w.one { // a client of websockets sends no POST
		return said
	}
	header = append(header, wire.Field{Name: "Content-Type", Value: "application/json"})
	a = c.Do(ctx, wire.Step{Method: "POST", Path: selfReviews, Header: header, Body: []byte(`{}`)})
	var review struct {
		Status struct{ UserInfo json.RawMessage }
	}
	_ = json.Unmarshal(a.Body, &review)
	var sorted any
	_ = json.Unmarshal(review.Status.UserInfo, &sorted)
	data, _ := json.Marshal(sorted)
	return fmt.Sprintf("%s; %d %s", said, a.Code, bytes.TrimSpace(data))
}

const selfReviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

// reviewed reports whether both servers have SelfSubjectReviews.
func reviewed(ctx context.Context, p *servers.Pair) bool {
	for _, c := range []*wire.Client{p.Theirs, p.Ours} {
		header := []wire.Field{{Name: "Content-Type", Value: "application/json"}}
		if c.Do(ctx, wire.Step{Method: "POST", Path: selfReviews, Header: header, Body: []byte(`{}`)}).Code != http.StatusCreated {
			return false
		}
	}
	return true
}

// kubeconfig writes the kubeconfig of a webhook.
func kubeconfig(t *testing.T, dir string, s *httptest.Server) string {
	t.Helper()
	ca := write(t, filepath.Join(dir, "hook.pem"), serverCA(s))
	return write(t, filepath.Join(dir, "hook.kubeconfig"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, s.URL+"/authenticate", ca))
}
