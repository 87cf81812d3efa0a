package serviceaccount

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// A fakeSigner signs in the process of the test.
type fakeSigner struct {
	t        testing.TB
	mu       sync.Mutex // while another goroutine fetches
	keys     map[string]*ecdsa.PrivateKey
	unlisted map[string]bool
	current  string // ID of the signing key
	header   string // in place of the valid one
	refresh  int64
	max      int64
	fetches  int
	err      error
}

func newSigner(t testing.TB) *fakeSigner {
	return &fakeSigner{t: t, keys: map[string]*ecdsa.PrivateKey{"one": ecdsaKey(t, elliptic.P256())}, unlisted: map[string]bool{},
		current: "one", refresh: 600, max: 7200}
}

func (f *fakeSigner) Sign(_ context.Context, claims string) (string, string, error) {
	if f.err != nil {
		return "", "", f.err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: f.keys[f.current], KeyID: f.current}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		f.t.Fatal(err)
	}
	payload, _ := base64.RawURLEncoding.DecodeString(claims)
	signed, err := signer.Sign(payload)
	if err != nil {
		f.t.Fatal(err)
	}
	token, _ := signed.CompactSerialize()
	parts := strings.Split(token, ".")
	if f.header != "" {
		parts[0] = base64.RawURLEncoding.EncodeToString([]byte(f.header))
	}
	return parts[0], parts[2], nil
}

func (f *fakeSigner) FetchKeys(context.Context) (SignerKeys, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetches++
	out := SignerKeys{At: time.Now(), RefreshSeconds: f.refresh}
	for id, k := range f.keys {
		der, err := x509.MarshalPKIXPublicKey(k.Public())
		if err != nil {
			f.t.Fatal(err)
		}
		out.Keys = append(out.Keys, SignerKey{ID: id, PKIX: der, Unlisted: f.unlisted[id]})
	}
	slices.SortFunc(out.Keys, func(a, b SignerKey) int { return strings.Compare(a.ID, b.ID) })
	return out, f.err
}

func (f *fakeSigner) MaxExpiration(context.Context) (int64, error) { return f.max, nil }

func connect(t testing.TB, o Options, f *fakeSigner) *External {
	t.Helper()
	k, err := Connect(t.Context(), o, f, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Tokens of an external signer are valid, also after it changes its key. Tokens of a removed key are
// rejected after the next fetch.
func TestExternalSigner(t *testing.T) {
	f := newSigner(t)
	k := connect(t, Options{}, f)
	w := newWorld(t, Options{}, k)
	first := w.issue(w.grant())
	if got := w.answers(first); got != robot {
		t.Fatal(got)
	}
	fetched := f.fetches

	f.keys["two"], f.current = ecdsaKey(t, elliptic.P256()), "two"
	second := w.issue(w.grant()) // fetches the keys: the ID is unknown
	for _, token := range []string{first, second} {
		if got := w.answers(token); got != robot {
			t.Error(got)
		}
	}
	if f.fetches != fetched+1 {
		t.Errorf("%d fetches for one unknown key", f.fetches-fetched)
	}
	if most, extended := w.MaxSeconds(), w.Issuer.extended; most != 7200 || extended != 7200 {
		t.Error("limits", most, extended)
	}

	delete(f.keys, "one")
	if err := k.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.answers(first); got != errNoKey.Error() {
		t.Error("by a key that is gone:", got)
	}
	// A cached rejection for an unknown key ends when the key arrives.
	f.keys["one"] = ecdsaKey(t, elliptic.P256())
	f.current = "one"
	third := w.issue(w.grant())
	k.now.Store(&externalKeys{all: keysOf(k.now.Load().all, "two"), generation: 9, refresh: time.Now()})
	if got := w.answers(third); got != errNoKey.Error() { // less than a second after the last fetch
		t.Error(got)
	}
	k.tried = time.Time{}
	if got := w.answers(third); got != robot {
		t.Error("after the fetch:", got)
	}
}

// Tokens with unknown key IDs cause at most one fetch a second and have no other effect.
func TestExternalFetchesAreFew(t *testing.T) {
	f := newSigner(t)
	w := newWorld(t, Options{}, connect(t, Options{}, f))
	other := newSigner(t)
	other.keys["x"], other.current = ecdsaKey(t, elliptic.P256()), "x"
	o := connect(t, Options{}, other)
	foreign := newWorld(t, Options{}, o)
	for range 100 {
		if got := w.answers(foreign.issue(foreign.grant())); got != errNoKey.Error() {
			t.Fatal(got)
		}
	}
	if f.fetches > 3 {
		t.Errorf("%d fetches for 100 tokens", f.fetches)
	}
}

// Headers with invalid or unexpected fields are rejected.
func TestExternalHeaders(t *testing.T) {
	f := newSigner(t)
	f.unlisted["old"], f.keys["old"] = true, ecdsaKey(t, elliptic.P256())
	w := newWorld(t, Options{}, connect(t, Options{}, f))
	for _, test := range []struct{ header, want string }{
		{`{"alg":"ES256","kid":"one","typ":"JWT","crit":[]}`, `while validating header: while parsing header JSON: json: unknown field "crit"`},
		{`{"alg":"ES256","kid":"one"}`, "while validating header: bad type"},
		{`{"alg":"ES256","typ":"JWT"}`, "while validating header: key id missing"},
		{`{"alg":"ES256","typ":"JWT","kid":"` + strings.Repeat("k", 1025) + `"}`, "while validating header: key id longer than 1 kb"},
		{`{"alg":"none","kid":"one","typ":"JWT"}`, `while validating header: bad signing algorithm "none"`},
		{`{"alg":"ES256","kid":"old","typ":"JWT"}`, "while validating header: key used for signing JWT (kid: old) is excluded from OIDC discovery docs"},
	} {
		f.header = test.header
		if _, _, err := w.Issuer.Issue(t.Context(), w.grant(), w.at); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v", test.header, err)
		}
	}
	f.header, f.err = "", errors.New("out of order")
	if _, _, err := w.Issuer.Issue(t.Context(), w.grant(), w.at); err == nil || err.Error() != "while signing jwt: out of order" {
		t.Error(err)
	}
}

// Discovery has the listed keys, until the next fetch.
func TestExternalDiscovery(t *testing.T) {
	f := newSigner(t)
	f.keys["old"], f.unlisted["old"] = ecdsaKey(t, elliptic.P256()), true
	k := connect(t, Options{}, f)
	d, err := NewDiscovery(Options{}, k, "localhost:443")
	if err != nil {
		t.Fatal(err)
	}
	ids := func() string {
		response := httptest.NewRecorder()
		d.ServeHTTP(response, httptest.NewRequest(http.MethodGet, KeysPath, nil))
		if age := response.Header().Get("Cache-Control"); age != "public, max-age=599" && age != "public, max-age=600" {
			t.Error(age)
		}
		var set jose.JSONWebKeySet
		data, _ := io.ReadAll(response.Body)
		if err := json.Unmarshal(data, &set); err != nil {
			t.Fatal(err, string(data))
		}
		var out []string
		for _, k := range set.Keys {
			out = append(out, k.KeyID)
		}
		return strings.Join(out, " ")
	}
	if got := ids(); got != "one" {
		t.Error(got)
	}
	f.keys["two"] = ecdsaKey(t, elliptic.P256())
	if err := k.fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := ids(); got != "one two" {
		t.Error(got)
	}
}

// Keys are fetched at the interval of the signer, and ten seconds after a failure.
func TestExternalRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSigner(t)
		f.refresh = 60
		k := connect(t, Options{}, f)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- k.Refresh(ctx) }()
		for _, step := range []struct {
			after time.Duration
			fail  bool
			want  int
		}{{59 * time.Second, false, 1}, {2 * time.Second, true, 2}, {60 * time.Second, true, 3}, {11 * time.Second, false, 4}} {
			time.Sleep(step.after)
			synctest.Wait()
			f.mu.Lock()
			if f.fetches != step.want {
				t.Errorf("%d fetches, not %d", f.fetches, step.want)
			}
			f.err = nil
			if step.fail {
				f.err = errors.New("away")
			}
			f.mu.Unlock()
		}
		if got, _ := k.find(ctx, "one"); len(got) != 1 {
			t.Error("the keys of the last fetch are gone")
		}
		cancel()
		<-done
	})
}

// A signer that makes kube-apiserver fail to start does so here, with the same messages.
func TestExternalRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		o    Options
		f    func(*fakeSigner)
		want string
	}{
		{"away", Options{}, func(f *fakeSigner) { f.err = errors.New("away") }, "while setting up external-jwt-signer: while initially filling key cache: while performing initial cache fill: " +
			"while fetching token verification keys: while getting externally supported jwt signing keys: away"},
		{"no keys", Options{}, func(f *fakeSigner) { f.keys = nil }, "while setting up external-jwt-signer: while initially filling key cache: while performing initial cache fill: " +
			"while fetching token verification keys: found no keys"},
		{"no refresh", Options{}, func(f *fakeSigner) { f.refresh = 0 }, "while setting up external-jwt-signer: while initially filling key cache: while performing initial cache fill: " +
			"while fetching token verification keys: found invalid refresh hint (0s)"},
		{"short", Options{}, func(f *fakeSigner) { f.max = 599 }, "max token life supported by external-jwt-signer (599s) is less than acceptable (min 600s)"},
		{"longer than it can", Options{MaxExpiration: 3 * time.Hour}, func(*fakeSigner) {}, "service-account-max-token-expiration cannot be set longer than the token expiration " +
			"supported by service-account-signing-endpoint: 3h0m0s > 2h0m0s"},
	} {
		f := newSigner(t)
		test.f(f)
		if _, err := Connect(t.Context(), test.o, f, slog.New(slog.DiscardHandler)); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	for _, test := range []struct {
		o    Options
		want string
	}{
		{Options{SigningEndpoint: "/s", KeyFiles: []string{"k"}}, "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)"},
		{Options{SigningEndpoint: "@a b"}, "invalid value \"@a b\" passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid abstract socket name"},
	} {
		if _, err := test.o.Read(); err == nil || err.Error() != test.want {
			t.Error(err)
		}
	}
}
