package oidc

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/network/egress"
)

// keys are generated once: RSA keys are slow.
var keys = sync.OnceValue(func() map[string]crypto.Signer {
	out := map[string]crypto.Signer{}
	for _, id := range []string{"one", "two"} {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		out[id] = key
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	out["curve"] = key
	return out
})

// A network has issuers and other servers by host. It implements http.RoundTripper.
type network struct {
	mu             sync.Mutex
	hosts          map[string]http.HandlerFunc
	asked          map[string]int // by URL
	authorizations []string
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.asked[r.URL.String()]++
	if a := r.Header.Get("Authorization"); a != "" {
		n.authorizations = append(n.authorizations, r.URL.Host+": "+a)
	}
	handler := n.hosts[r.URL.Host]
	n.mu.Unlock()
	if handler == nil {
		return nil, fmt.Errorf("no server at %s", r.URL.Host)
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	handler(w, r)
	return w.Result(), nil
}

func (n *network) serve(host string, handler http.HandlerFunc) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[host] = handler
}

func (n *network) times(url string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked[url]
}

// A provider is an issuer on a network, with the keys of ids.
type provider struct {
	url string
	mu  sync.Mutex
	ids []string
}

// newProvider starts an issuer at a host.
func (n *network) newProvider(host string, ids ...string) *provider {
	p := &provider{url: "https://" + host, ids: ids}
	n.serve(host, p.serve)
	return p
}

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration", "/elsewhere":
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": p.url, "jwks_uri": p.url + "/keys"})
	case "/keys":
		p.mu.Lock()
		defer p.mu.Unlock()
		var set jose.JSONWebKeySet
		for _, id := range p.ids {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: keys()[id].Public(), KeyID: id})
		}
		_ = json.NewEncoder(w).Encode(set)
	default:
		http.NotFound(w, r)
	}
}

// have replaces the keys of the issuer.
func (p *provider) have(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = ids
}

// sign returns a token with claims.
func sign(t testing.TB, algorithm jose.SignatureAlgorithm, key any, id string, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// claimsWith returns valid claims with changes; nil removes a claim.
func claimsWith(changes map[string]any) map[string]any {
	out := map[string]any{"iss": "https://issuer", "aud": "anykind", "sub": "eve", "exp": 946688400} // an hour after the beginning of a bubble
	for name, value := range changes {
		out[name] = value
		if value == nil {
			delete(out, name)
		}
	}
	return out
}

// public returns the public key as a JSON web key.
func public(t testing.TB, id string) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(keys()[id].Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func newNetwork() *network {
	return &network{hosts: map[string]http.HandlerFunc{}, asked: map[string]int{}}
}

func (n *network) options() Options {
	return Options{
		Transport: func(*tls.Config, egress.Dial) http.RoundTripper { return n },
		Metrics:   NewMetrics("server"), Log: slog.New(slog.DiscardHandler), Own: []string{"https://us"},
	}
}

// config returns a configuration of issuers in YAML.
func config(t testing.TB, issuers ...string) *Config {
	t.Helper()
	c, err := parse([]byte(configText(issuers...)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.check(nil, nil).ToAggregate(); err != nil {
		t.Fatal(err)
	}
	return c
}

func configText(issuers ...string) string {
	text := "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt:\n"
	for _, issuer := range issuers {
		text += "- " + strings.ReplaceAll(strings.TrimSpace(issuer), "\n", "\n  ") + "\n"
	}
	return text
}

// simple returns an issuer whose user names are the claim sub.
func simple(url string) string {
	out, err := yaml.Marshal(map[string]any{
		"issuer":        map[string]any{"url": url, "audiences": []string{"anykind"}},
		"claimMappings": map[string]any{"username": map[string]any{"claim": "sub", "prefix": ""}, "groups": map[string]any{"claim": "groups", "prefix": "oidc:"}},
	})
	if err != nil {
		panic(err)
	}
	return string(out)
}
