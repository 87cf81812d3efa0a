package tokens

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// keys are the keys of both servers, and one that neither has.
type keys struct {
	signing, strange *ecdsa.PrivateKey
	rsa              *rsa.PrivateKey
	id, rsaID        string
	public           []byte // of the signing key, PEM
	flags            []string
}

func newKeys(t *testing.T, dir string) *keys {
	t.Helper()
	k := &keys{}
	var err error
	for _, to := range []**ecdsa.PrivateKey{&k.signing, &k.strange} {
		if *to, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	if k.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	name := func(public crypto.PublicKey) (string, []byte) {
		der, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(der)
		return base64.RawURLEncoding.EncodeToString(sum[:]), der
	}
	der, err := x509.MarshalECPrivateKey(k.signing)
	if err != nil {
		t.Fatal(err)
	}
	signing, verifying := filepath.Join(dir, "signing.pem"), filepath.Join(dir, "rsa.pem")
	write(t, signing, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	k.id, der = name(k.signing.Public())
	k.public = pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	k.rsaID, der = name(k.rsa.Public())
	write(t, verifying, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	k.flags = []string{"--service-account-key-file=" + signing, "--service-account-key-file=" + verifying, "--service-account-signing-key-file=" + signing}
	return k
}

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// sign returns a token, signed by a key of both servers with the algorithm in its header.
func (k *keys) sign(t *testing.T, header, claims map[string]any) string {
	t.Helper()
	signed := encode(t, header) + "." + encode(t, claims)
	return signed + "." + base64.RawURLEncoding.EncodeToString(k.signature(t, header["alg"].(string), k.signing, signed))
}

func (k *keys) signature(t *testing.T, alg string, by *ecdsa.PrivateKey, signed string) []byte {
	t.Helper()
	sum := sha256.Sum256([]byte(signed))
	var out []byte
	var err error
	switch alg {
	case "ES256":
		r, s, failed := ecdsa.Sign(rand.Reader, by, sum[:])
		out, err = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...), failed
	case "RS256":
		out, err = rsa.SignPKCS1v15(rand.Reader, k.rsa, crypto.SHA256, sum[:])
	case "PS256":
		out, err = rsa.SignPSS(rand.Reader, k.rsa, crypto.SHA256, sum[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	case "HS256":
		mac := hmac.New(sha256.New, k.public)
		mac.Write([]byte(signed))
		out = mac.Sum(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// attack makes manipulated tokens from the token plain, and uses them.
func (p *pair) attack() {
	now := time.Now().Unix()
	set := func(key string, value any) func(map[string]any) {
		return func(c map[string]any) { c[key] = value }
	}
	for _, a := range []struct {
		name   string
		header map[string]any
		claims func(map[string]any) // nil keeps them
		by     *ecdsa.PrivateKey    // nil for the servers' key
	}{
		{name: "the same again", header: map[string]any{"alg": "ES256", "kid": p.keys.id}},
		{name: "without a key id", header: map[string]any{"alg": "ES256"}},
		{name: "by the other key", header: map[string]any{"alg": "RS256", "kid": p.keys.rsaID}},
		{name: "by the other key, padded", header: map[string]any{"alg": "PS256", "kid": p.keys.rsaID}},
		{name: "none", header: map[string]any{"alg": "none", "kid": p.keys.id}},
		{name: "None", header: map[string]any{"alg": "None"}},
		{name: "no algorithm", header: map[string]any{"alg": ""}},
		{name: "unknown algorithm", header: map[string]any{"alg": "XX256", "kid": p.keys.id}},
		{name: "the public key as a secret", header: map[string]any{"alg": "HS256", "kid": p.keys.id}},
		{name: "the public key as a secret, without a key id", header: map[string]any{"alg": "HS256"}},
		{name: "another key id", header: map[string]any{"alg": "ES256", "kid": p.keys.rsaID}},
		{name: "an unknown key id", header: map[string]any{"alg": "ES256", "kid": "x"}},
		{name: "by a strange key", header: map[string]any{"alg": "ES256", "kid": p.keys.id}, by: p.keys.strange},
		{name: "by a strange key that comes along", header: map[string]any{"alg": "ES256", "jwk": map[string]any{
			"kty": "EC", "crv": "P-256", "x": base64.RawURLEncoding.EncodeToString(p.keys.strange.X.FillBytes(make([]byte, 32))),
			"y": base64.RawURLEncoding.EncodeToString(p.keys.strange.Y.FillBytes(make([]byte, 32))),
		}}, by: p.keys.strange},
		{name: "critical", header: map[string]any{"alg": "ES256", "kid": p.keys.id, "crit": []string{"x"}, "x": 1}},
		{name: "expired", header: es(p), claims: set("exp", now-100)},
		{name: "just expired", header: es(p), claims: set("exp", now-30)},
		{name: "without an end", header: es(p), claims: func(c map[string]any) { delete(c, "exp") }},
		{name: "not yet valid", header: es(p), claims: set("nbf", now+100)},
		{name: "from the future", header: es(p), claims: set("iat", now+100)},
		{name: "end is a text", header: es(p), claims: set("exp", "never")},
		{name: "for another audience", header: es(p), claims: set("aud", []string{"x"})},
		{name: "for an audience as a text", header: es(p), claims: set("aud", "https://localhost")},
		{name: "for no audience", header: es(p), claims: func(c map[string]any) { delete(c, "aud") }},
		{name: "of another issuer", header: es(p), claims: set("iss", "https://other")},
		{name: "of no issuer", header: es(p), claims: func(c map[string]any) { delete(c, "iss") }},
		{name: "of the issuer of Secrets", header: es(p), claims: set("iss", "kubernetes/serviceaccount")},
		{name: "of another subject", header: es(p), claims: set("sub", "system:serviceaccount:kube-system:admin")},
		{name: "of nothing", header: es(p), claims: func(c map[string]any) { delete(c, "kubernetes.io") }},
		{name: "of another account", header: es(p), claims: inside("serviceaccount", map[string]any{"name": "other", "uid": "x"})},
		{name: "of an account that is not there", header: es(p), claims: inside("serviceaccount", map[string]any{"name": "missing", "uid": "x"})},
		{name: "of a pod that is not there", header: es(p), claims: inside("pod", map[string]any{"name": "missing", "uid": "x"})},
		{name: "of a Secret that is not there", header: es(p), claims: inside("secret", map[string]any{"name": "missing", "uid": "x"})},
		{name: "of a node that is not there", header: es(p), claims: inside("node", map[string]any{"name": "missing", "uid": "x"})},
		{name: "of a webhook", header: es(p), claims: inside("validatingwebhookconfiguration", map[string]any{"name": "missing", "uid": "x"})},
		{name: "without an id", header: es(p), claims: func(c map[string]any) { delete(c, "jti") }},
	} {
		for _, x := range p.sides {
			claims := maps.Clone(part(strings.Split(x.tokens["plain"], ".")[1]))
			if a.claims != nil {
				a.claims(claims)
			}
			by := a.by
			if by == nil {
				by = p.keys.signing
			}
			signed := encode(p.T, a.header) + "." + encode(p.T, claims)
			x.tokens[a.name] = signed + "." + base64.RawURLEncoding.EncodeToString(p.keys.signature(p.T, a.header["alg"].(string), by, signed))
		}
		p.use(a.name)
	}
	for name, change := range map[string]func(string) string{
		"cut off":       func(t string) string { return t[:len(t)-8] },
		"no signature":  func(t string) string { return t[:strings.LastIndexByte(t, '.')+1] },
		"two parts":     func(t string) string { return t[:strings.LastIndexByte(t, '.')] },
		"four parts":    func(t string) string { return t + ".x" },
		"padded":        func(t string) string { return t + "=" },
		"no token":      func(string) string { return "x" },
		"huge":          func(t string) string { return t[:40] + strings.Repeat("A", 200_000) + t[40:] },
		"deep":          func(string) string { return deep() },
		"changed":       func(t string) string { return t[:100] + "AAAA" + t[104:] },
		"changed later": func(t string) string { return t[:len(t)-6] + "AAAA" + t[len(t)-2:] },
	} {
		for _, x := range p.sides {
			x.tokens[name] = change(x.tokens["plain"])
		}
		p.use(name)
	}
}

// es returns the token header of both servers.
func es(p *pair) map[string]any { return map[string]any{"alg": "ES256", "kid": p.keys.id} }

// inside returns a change of a claim of Kubernetes.
func inside(key string, value any) func(map[string]any) {
	return func(c map[string]any) {
		k, _ := c["kubernetes.io"].(map[string]any)
		k[key] = value
	}
}

func deep() string {
	text := `{"iss":"https://localhost","x":` + strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000) + "}"
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"ES256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".AAAA"
}
