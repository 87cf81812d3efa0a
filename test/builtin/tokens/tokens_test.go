// Package tokens compares the service account authenticator with kube-apiserver's for random tokens.
// Both have the same key and see the same objects.
package tokens

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	upstream "k8s.io/kubernetes/pkg/serviceaccount"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A pair is both authenticators, with the same key and over the same objects.
type pair struct {
	key    *ecdsa.PrivateKey
	id     string
	ours   *serviceaccount.Authenticator
	issuer *serviceaccount.Issuer
	theirs authenticator.Token
}

const tokenIssuer = "https://issuer.example"

func newPair(t testing.TB) *pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	f := &pair{key: key, id: base64.RawURLEncoding.EncodeToString(sum[:])}

	getter, err := upstream.StaticPublicKeysGetter([]any{key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	audiences := authenticator.Audiences{tokenIssuer}
	f.theirs = tokenunion.New(upstream.JWTTokenAuthenticator([]string{tokenIssuer}, getter, audiences, upstream.NewValidator(storedObjects{})))

	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := serviceaccount.LoadKeys([]string{path}, path)
	if err != nil {
		t.Fatal(err)
	}
	o := serviceaccount.Options{Issuers: []string{tokenIssuer}}
	f.issuer = serviceaccount.NewIssuer(o)
	f.issuer.Use(keys)
	f.ours = serviceaccount.NewAuthenticator(o, serviceaccount.Dependencies{
		Keys: keys, Cache: storedCache(t), Log: slog.New(slog.DiscardHandler),
		Accounts: plural("serviceaccounts", true), Secrets: plural("secrets", true), Pods: plural("pods", true), Nodes: plural("nodes", false),
		ValidatingWebhooks: plural("validatingwebhookconfigurations", false), MutatingWebhooks: plural("mutatingwebhookconfigurations", false),
	})
	return f
}

func plural(name string, namespaced bool) *resource.Definition {
	return resource.New(resource.Definition{Plural: name, Namespaced: namespaced, StoragePrefix: "/registry/" + name + "/"})
}

// objectMeta returns the metadata of an object on both sides. There are objects named a, with the uid
// a, and objects named b, whose deletion began long ago.
func objectMeta(namespace, name string) (m metav1.ObjectMeta, ok bool) {
	m = metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}
	if name == "b" {
		m.DeletionTimestamp = &metav1.Time{Time: time.Unix(1e9, 0).UTC()}
	}
	return m, (namespace == "dev" || namespace == "") && (name == "a" || name == "b")
}

// storedCache has the objects on our side.
func storedCache(t testing.TB) *watchcache.Cache {
	t.Helper()
	backend := memkv.New(memkv.Options{})
	for _, prefix := range []string{"serviceaccounts/dev/", "secrets/dev/", "pods/dev/", "nodes/"} {
		for _, name := range []string{"a", "b"} {
			namespace := ""
			if prefix != "nodes/" {
				namespace = "dev"
			}
			m, _ := objectMeta(namespace, name)
			data, err := json.Marshal(map[string]any{"metadata": m})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := backend.Commit(t.Context(), kv.Write{Key: "/registry/" + prefix + name, Value: data}); err != nil {
				t.Fatal(err)
			}
		}
	}
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		backend.Close()
	})
	return cache
}

// storedObjects are the objects on upstream's side.
type storedObjects struct{}

func (storedObjects) GetServiceAccount(_ context.Context, namespace, name string) (*corev1.ServiceAccount, error) {
	if name == "" {
		return nil, errors.New("resource name may not be empty") // as the client of kube-apiserver
	}
	m, ok := objectMeta(namespace, name)
	if !ok || namespace == "" {
		return nil, apierrors.NewNotFound(corev1.Resource("serviceaccounts"), name)
	}
	return &corev1.ServiceAccount{ObjectMeta: m}, nil
}

func (storedObjects) GetPod(_ context.Context, namespace, name string) (*corev1.Pod, error) {
	m, ok := objectMeta(namespace, name)
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	return &corev1.Pod{ObjectMeta: m}, nil
}

func (storedObjects) GetSecret(_ context.Context, namespace, name string) (*corev1.Secret, error) {
	m, ok := objectMeta(namespace, name)
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
	}
	return &corev1.Secret{ObjectMeta: m}, nil
}

func (storedObjects) GetNode(_ context.Context, name string) (*corev1.Node, error) {
	m, ok := objectMeta("", name)
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	}
	return &corev1.Node{ObjectMeta: m}, nil
}

func (storedObjects) GetValidatingWebhookConfiguration(_ context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	return nil, apierrors.NewNotFound(admissionregistrationv1.Resource("validatingwebhookconfigurations"), name)
}

func (storedObjects) GetMutatingWebhookConfiguration(_ context.Context, name string) (*admissionregistrationv1.MutatingWebhookConfiguration, error) {
	return nil, apierrors.NewNotFound(admissionregistrationv1.Resource("mutatingwebhookconfigurations"), name)
}

// sign signs a token with arbitrary header and payload bytes.
func (f *pair) sign(t testing.TB, header, payload []byte) string {
	t.Helper()
	signed := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sum := sha256.Sum256([]byte(signed))
	r, s, err := ecdsa.Sign(crand.Reader, f.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

// compare authenticates a token on both sides, compares the results, and returns ours.
func (f *pair) compare(t testing.TB, token string, audiences []string) string {
	t.Helper()
	ctx := context.Background()
	if audiences != nil {
		ctx = authenticator.WithAudiences(ctx, audiences)
	}
	theirs, theirOK, theirErr := f.theirs.AuthenticateToken(ctx, token)
	for range 2 { // the second time, our side has the signature in its cache
		ours, ourOK, ourErr := f.ours.AuthenticateToken(context.Background(), token, audiences)
		if theirOK != ourOK || words(theirErr) != words(ourErr) {
			t.Errorf("%s\nfor %q\nKubernetes %v %v\nanykind    %v %v", readable(token), audiences, theirOK, theirErr, ourOK, ourErr)
			continue
		}
		if !ourOK {
			continue
		}
		u := theirs.User
		groups := append(u.GetGroups(), "system:authenticated") // upstream adds it later
		if u.GetName() != ours.User.Name || u.GetUID() != ours.User.UID || !reflect.DeepEqual(groups, ours.User.Groups) ||
			fmt.Sprint(u.GetExtra()) != fmt.Sprint(ours.User.Extra) || !reflect.DeepEqual([]string(theirs.Audiences), ours.Audiences) {
			t.Errorf("%s\nfor %q\nKubernetes %v %v\nanykind    %v %v", readable(token), audiences, u, theirs.Audiences, ours.User, ours.Audiences)
		}
	}
	return words(theirErr)
}

// goType matches a Go type, which differs between the two.
var goType = regexp.MustCompile(`of type \S+`)

func words(err error) string {
	if err == nil {
		return ""
	}
	return goType.ReplaceAllString(err.Error(), "")
}

func readable(token string) string {
	var out []string
	for _, part := range strings.Split(token, ".") {
		data, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil || len(out) == 2 {
			data = []byte(part)
		}
		out = append(out, string(data))
	}
	return strings.Join(out, "\n.")
}

// For random claims and headers with a valid signature, and for random damage, both sides accept the
// same tokens as the same users, and reject the others with the same errors.
func TestTokens(t *testing.T) {
	f := newPair(t)
	seen := map[string]int{}
	tokens := uint64(20_000)
	if testing.Short() {
		tokens /= 4
	}
	for seed := range tokens {
		r := rand.New(rand.NewPCG(seed, 7))
		token := f.random(t, r)
		if r.IntN(4) == 0 {
			token = damaged(r, token)
		}
		seen[f.compare(t, token, pick(r, nil, nil, nil, []string{"x"}, []string{"x", tokenIssuer}))]++
		if t.Failed() {
			t.Fatal("seed", seed)
		}
	}
	t.Logf("%d different answers", len(seen))
	for words, n := range seen {
		t.Logf("%6d %s", n, words)
	}
	if len(seen) < 15 {
		t.Error("the tokens are all alike")
	}
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// random returns a signed token with mostly valid claims.
func (f *pair) random(t testing.TB, r *rand.Rand) string {
	t.Helper()
	rarely := func() bool { return r.IntN(12) == 0 }
	now := time.Now().Unix()
	name := func() map[string]any {
		n := pick(r, "a", "a", "a", "b", "c", "", "../dev/a")
		uid := n
		if rarely() {
			uid = pick(r, "other", "")
		}
		return map[string]any{"name": n, "uid": uid}
	}
	of := map[string]any{"namespace": "dev", "serviceaccount": map[string]any{"name": "a", "uid": "a"}}
	if rarely() {
		of["serviceaccount"] = name()
	}
	if rarely() {
		of["namespace"] = pick(r, "", "other", "de/v")
	}
	for _, key := range []string{"pod", "secret", "node"} {
		if r.IntN(4) == 0 {
			of[key] = name()
		}
	}
	if rarely() {
		of["warnafter"] = pick(r, now-100, now+100, 0)
	}
	if r.IntN(40) == 0 {
		of["mutatingwebhookconfiguration"] = name()
	}
	claims := map[string]any{
		"iss": tokenIssuer, "sub": "system:serviceaccount:dev:a", "aud": []string{tokenIssuer}, "kubernetes.io": of,
		"iat": now, "nbf": now, "exp": now + 3600, "jti": "some-id",
	}
	for key, values := range map[string][]any{
		"iss": {"https://other", "", 7, nil}, "sub": {"", "system:anonymous", 7}, "jti": {"", 7, nil},
		"aud": {tokenIssuer, "x", []string{"x", tokenIssuer}, []string{}, []any{7}, nil, 7},
		"iat": {now + 30, now + 100, 0, -1, "now", 1.5, nil}, "nbf": {now + 30, now + 100, nil}, "exp": {now - 30, now - 100, 0, nil, "never", 1e30},
		"kubernetes.io": {nil, map[string]any{}, "x"},
	} {
		if rarely() {
			claims[key] = values[r.IntN(len(values))]
			if r.IntN(5) == 0 {
				delete(claims, key)
			}
		}
	}
	header := map[string]any{"alg": "ES256", "kid": f.id}
	if rarely() {
		header["kid"] = pick[any](r, "other", "", nil, 7)
	}
	if r.IntN(30) == 0 {
		header["alg"] = pick[any](r, "RS256", "HS256", "none", "ES384", "", nil, "es256", 7)
	}
	if r.IntN(30) == 0 {
		header[pick(r, "typ", "cty", "x5c", "jku", "nonce", "b64")] = pick[any](r, "JWT", []string{"x"}, false, nil)
	}
	if r.IntN(60) == 0 {
		header["crit"] = []string{"x"}
	}
	return f.sign(t, marshal(t, header), marshal(t, claims))
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// damaged changes a token at random.
func damaged(r *rand.Rand, token string) string {
	i := r.IntN(len(token))
	switch r.IntN(6) {
	case 0:
		return token[:i]
	case 1:
		return token[i:]
	case 2:
		return token[:i] + pick(r, ".", "A", "=", " ", "\n", "{", "\x00", "é") + token[i:]
	case 3:
		return token[:i] + pick(r, "A", "B", "_", ".") + token[i+1:]
	case 4:
		return token + pick(r, ".", "=", "\n", " ", "x")
	default:
		return pick(r, "{", " ", "Bearer ", "\n") + token
	}
}

// Upstream accepts tokens from our issuer as the same user.
func TestIssuedTokens(t *testing.T) {
	f := newPair(t)
	for _, g := range []serviceaccount.Grant{
		{},
		{Pod: &serviceaccount.Reference{Name: "a", UID: "a"}, Node: &serviceaccount.Reference{Name: "gone"}},
		{Secret: &serviceaccount.Reference{Name: "a", UID: "a"}},
		{Node: &serviceaccount.Reference{Name: "a", UID: "a"}},
	} {
		g.Namespace, g.Account, g.Audiences, g.Seconds = "dev", serviceaccount.Reference{Name: "a", UID: "a"}, []string{tokenIssuer}, 3600
		token, _, err := f.issuer.Issue(t.Context(), g, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if words := f.compare(t, token, nil); words != "" {
			t.Error(words)
		}
	}
}

// BenchmarkTokens measures a repeated authentication with the token of a pod. Upstream caches results
// for ten seconds, and then repeats all work; our side always checks that the bound objects exist. Run
// it with
//
//	go test -run '^$' -bench Tokens -benchmem .
func BenchmarkTokens(b *testing.B) {
	f := newPair(b)
	token, _, err := f.issuer.Issue(b.Context(), serviceaccount.Grant{
		Namespace: "dev", Account: serviceaccount.Reference{Name: "a", UID: "a"}, Audiences: []string{tokenIssuer}, Seconds: 3600,
		Pod: &serviceaccount.Reference{Name: "a", UID: "a"}, Node: &serviceaccount.Reference{Name: "a", UID: "a"},
	}, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	b.Run("upstream", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok, err := f.theirs.AuthenticateToken(ctx, token); !ok {
				b.Fatal(err)
			}
		}
	})
	b.Run("anykind", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok, err := f.ours.AuthenticateToken(ctx, token, nil); !ok {
				b.Fatal(err)
			}
		}
	})
}
