// Package oidctest has an OpenID Connect issuer for tests.
//
// It signs valid tokens and serves discovery over TLS. Invalid tokens are made by the tests of
// package oidc.
package oidctest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// An Issuer runs until it is closed.
type Issuer struct {
	*httptest.Server
	// Found is closed after the first request for the discovery document.
	Found <-chan struct{}

	signer jose.Signer
}

const keyID = "k"

// Start starts an issuer.
func Start() (*Issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	found := make(chan struct{})
	i := &Issuer{Found: found}
	if i.signer, err = jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: keyID}}, nil); err != nil {
		return nil, err
	}
	ask := sync.OnceFunc(func() { close(found) })
	i.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: keyID}}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/keys"})
		ask()
	}))
	return i, nil
}

// CA returns the CA certificate of the issuer, as PEM.
func (i *Issuer) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
}

// Token returns a token with claims. It expires after an hour.
func (i *Issuer) Token(claims map[string]any) (string, error) {
	all := map[string]any{"iss": i.URL, "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	payload, err := json.Marshal(all)
	if err != nil {
		return "", err
	}
	signed, err := i.signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}
