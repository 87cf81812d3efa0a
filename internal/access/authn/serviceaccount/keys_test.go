package serviceaccount

import (
	"crypto"
	"crypto/elliptic"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// The first start generates a key that only its owner can read. Later starts use it.
func TestOwnKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, keyFile)
	first, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.Stat(path)
	if err != nil || is.Mode().Perm() != 0o600 {
		t.Fatal(is, err)
	}
	token := newWorld(t, Options{}, first).issue((&world{Issuer: NewIssuer(Options{})}).grant())
	second, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := newWorld(t, Options{}, second).answers(token); got != robot {
		t.Error(got)
	}

	// A key inserted in front signs from then on, and the old one still verifies.
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(privatePEM(t, ecdsaKey(t, elliptic.P384()))+string(old)), 0o600); err != nil {
		t.Fatal(err)
	}
	rotated, err := OpenKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, Options{}, rotated)
	if got := w.answers(token); got != robot {
		t.Error(got)
	}
	if got := w.answers(w.issue(w.grant())); got != robot {
		t.Error(got)
	}
	if got := newWorld(t, Options{}, second).answers(w.issue(w.grant())); got != "invalid signature, no keys found" {
		t.Error(got)
	}

	if err := os.WriteFile(path, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(dir); err == nil || !strings.Contains(err.Error(), "restore the file") {
		t.Error(err)
	}
}

// Key rotation: first all servers verify with the new key, then it signs, then the old key is
// removed.
func TestRotation(t *testing.T) {
	a, b := rsaKey, ecdsaKey(t, elliptic.P256())
	publicA, publicB := publicPEM(t, a), publicPEM(t, b)
	var tokens []string
	for _, tt := range []struct {
		name string
		keys Keys
		want []string // results for tokens signed by each of these
	}{
		{"one", load(t, a, publicA), []string{robot}},
		{"two verify", load(t, a, publicA, publicB), []string{robot, robot}},
		{"the new one signs", load(t, b, publicA, publicB), []string{robot, robot, robot}},
		{"the old one is gone", load(t, b, publicB), []string{"invalid signature, no keys found", "invalid signature, no keys found", robot, robot}},
	} {
		w := newWorld(t, Options{}, tt.keys)
		tokens = append(tokens, w.issue(w.grant()))
		for i, want := range tt.want {
			if got := w.answers(tokens[i]); got != want {
				t.Errorf("%s: token %d: %q, want %q", tt.name, i, got, want)
			}
		}
	}
}

// Keys of all types sign and verify, with the algorithm of their type.
func TestAlgorithms(t *testing.T) {
	for alg, key := range map[jose.SignatureAlgorithm]crypto.Signer{
		jose.RS256: rsaKey,
		jose.ES256: ecdsaKey(t, elliptic.P256()),
		jose.ES384: ecdsaKey(t, elliptic.P384()),
		jose.ES512: ecdsaKey(t, elliptic.P521()),
	} {
		w := newWorld(t, Options{}, load(t, key, "junk\n", privatePEM(t, key)))
		token := w.issue(w.grant())
		parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{alg})
		if err != nil || parsed.Headers[0].KeyID != w.keys.(*fileKeys).all[0].id {
			t.Error(alg, parsed, err)
		}
		if got := w.answers(token); got != robot {
			t.Error(alg, got)
		}
	}
	if _, err := LoadKeys([]string{file(t, publicPEM(t, ecdsaKey(t, elliptic.P224())))}, ""); err == nil || !strings.Contains(err.Error(), "must be 256, 384, or 521") {
		t.Error(err)
	}
}

// Flags are validated before any change, with the messages of kube-apiserver.
func TestOptions(t *testing.T) {
	key := file(t, privatePEM(t, rsaKey))
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"nothing", Options{}, ""},
		{"keys", Options{KeyFiles: []string{key}, SigningKeyFile: key}, ""},
		{"no key to verify by", Options{SigningKeyFile: key}, "--service-account-signing-key-file and --service-account-key-file should be specified together"},
		{"no key to sign with", Options{KeyFiles: []string{key}}, "--service-account-signing-key-file and --service-account-key-file should be specified together"},
		{"no such file", Options{KeyFiles: []string{"/nowhere"}, SigningKeyFile: key}, "no such file or directory"},
		{"a public key to sign with", Options{KeyFiles: []string{key}, SigningKeyFile: file(t, publicPEM(t, rsaKey))}, "data does not contain a valid RSA or ECDSA private key"},
		{"nothing in a file", Options{KeyFiles: []string{file(t, "")}, SigningKeyFile: key}, "data does not contain any valid RSA or ECDSA public keys"},
		{"an issuer that is no URL", Options{Issuers: []string{"https://a:b:c"}}, `service-account-issuer "https://a:b:c" contained a ':' but was not a valid URL: `},
		{"an empty issuer", Options{Issuers: []string{""}}, "service-account-issuer should not be an empty string"},
		{"an issuer twice", Options{Issuers: []string{"a", "a"}}, `service-account-issuer "a" is already specified`},
		{"keys at a URL that is none", Options{JWKSURI: "https://a:b:c"}, "service-account-jwks-uri must be a valid URL: "},
		{"keys at a URL without TLS", Options{JWKSURI: "http://a"}, "service-account-jwks-uri requires https scheme, parsed as: http://a"},
		{"too short", Options{MaxExpiration: time.Minute}, "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"},
		{"too long", Options{MaxExpiration: (1<<32 + 1) * time.Second}, "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"},
	} {
		_, err := tt.o.Read()
		if err == nil {
			err = errors.New("")
		}
		if tt.want == "" && err.Error() != "" || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, err, tt.want)
		}
	}
}
