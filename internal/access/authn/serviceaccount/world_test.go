package serviceaccount

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A world is a store with accounts and bound objects, an Issuer, and an Authenticator with the same
// keys. Objects are named by their plural and their key.
type world struct {
	testing.TB
	backend kv.Backend
	*Issuer
	*Authenticator
	keys Keys
	at   time.Time
	used []string // Secrets with a recorded use, and the day
}

func definition(plural string, namespaced bool) *resource.Definition {
	return resource.New(resource.Definition{Plural: plural, Namespaced: namespaced, StoragePrefix: "/registry/" + plural + "/"})
}

// newWorld returns a world with the account dev/robot, the Pod, the Secret and the Node n, and
// Secrets with a token.
func newWorld(t testing.TB, o Options, k Keys) *world {
	t.Helper()
	if k == nil {
		var err error
		if k, err = OpenKeys(""); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{TB: t, backend: memkv.New(memkv.Options{}), keys: k, at: time.Now()}
	cache := watchcache.New(w.backend, watchcache.Options{})
	w.Issuer = NewIssuer(o)
	w.Issuer.Use(k)
	w.Authenticator = NewAuthenticator(o, Dependencies{
		Keys: k, Cache: cache, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return w.at },
		Accounts: definition("serviceaccounts", true), Secrets: definition("secrets", true),
		Pods: definition("pods", true), Nodes: definition("nodes", false),
		ValidatingWebhooks: definition("validatingwebhookconfigurations", false), MutatingWebhooks: definition("mutatingwebhookconfigurations", false),
		Gates: gate.With(map[gate.Name]bool{gate.APIServerWebhookAuthenticationToken: true}),
		Use: func(_ context.Context, namespace, name, uid, day string) error {
			w.used = append(w.used, namespace+"/"+name+" "+uid+" "+day)
			return nil
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		w.backend.Close()
	})
	w.put("serviceaccounts/dev/robot", `{}`)
	w.put("pods/dev/n", `{}`)
	w.put("secrets/dev/n", `{}`)
	w.put("nodes/n", `{}`)
	w.put("validatingwebhookconfigurations/n", `{}`)
	w.put("mutatingwebhookconfigurations/n", `{}`)
	return w
}

// put stores an object with the uid "uid of KEY", unless the text has another.
func (w *world) put(key, text string) {
	w.Helper()
	o := map[string]any{}
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		w.Fatal(err)
	}
	parts := strings.Split(key, "/")
	m, _ := o["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	m["name"] = parts[len(parts)-1]
	if len(parts) == 3 {
		m["namespace"] = parts[1]
	}
	if m["uid"] == nil {
		m["uid"] = "uid of " + key
	}
	o["metadata"] = m
	value, err := json.Marshal(o)
	if err != nil {
		w.Fatal(err)
	}
	w.commit(key, value)
}

func (w *world) remove(key string) { w.commit(key, nil) }

func (w *world) commit(key string, value []byte) {
	w.Helper()
	write := kv.Write{Key: "/registry/" + key, Value: value}
	if now, err := w.backend.Get(w.Context(), write.Key, kv.Latest); err == nil {
		write.Expect, write.Was = now.Revision, now.Value
	}
	if _, err := w.backend.Commit(w.Context(), write); err != nil {
		w.Fatal(err)
	}
}

// grant returns a Grant for the account robot, for an hour.
func (w *world) grant() Grant {
	return Grant{
		Namespace: "dev", Account: Reference{"robot", "uid of serviceaccounts/dev/robot"},
		Audiences: w.Issuer.Audiences(), Seconds: 3600,
	}
}

// issue signs a token now.
func (w *world) issue(g Grant) string {
	w.Helper()
	token, _, err := w.Issuer.Issue(w.Context(), g, w.at)
	if err != nil {
		w.Fatal(err)
	}
	return token
}

// legacy stores a Secret with a token, and returns the token.
func (w *world) legacy(secret string, labels string) string {
	w.Helper()
	token, err := w.IssueLegacy(w.Context(), "dev", w.grant().Account, secret)
	if err != nil {
		w.Fatal(err)
	}
	data, _ := json.Marshal(map[string][]byte{"token": []byte(token)})
	w.put("secrets/dev/"+secret, `{"type":"kubernetes.io/service-account-token","metadata":{"labels":{`+labels+`}},"data":`+string(data)+`}`)
	return token
}

// answers returns the outcome of an authentication: the user name, the error, or no token.
func (w *world) answers(token string, audiences ...string) string {
	w.Helper()
	a, ok, err := w.AuthenticateToken(w.Context(), token, audiences)
	switch {
	case err != nil && (ok || a != nil):
		w.Fatal("there is a user, and an error", err)
	case err != nil:
		return err.Error()
	case !ok:
		return "none of ours"
	}
	return a.User.Name
}

const robot = "system:serviceaccount:dev:robot"

// user returns the answer to a valid token.
func (w *world) user(token string) *authn.TokenAnswer {
	w.Helper()
	a, ok, err := w.AuthenticateToken(w.Context(), token, nil)
	if err != nil || !ok {
		w.Fatal(ok, err)
	}
	return a
}

// rsaKey is generated once: it is slow.
var rsaKey = func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
}()

func ecdsaKey(t testing.TB, c elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// privatePEM and publicPEM encode keys as PEM.
func privatePEM(t testing.TB, k crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func publicPEM(t testing.TB, k crypto.Signer) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

func file(t testing.TB, contents ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "keys.pem")
	if err := os.WriteFile(path, []byte(strings.Join(contents, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// load reads the verifying keys and the signing key from files.
func load(t testing.TB, signing crypto.Signer, verifying ...string) Keys {
	t.Helper()
	k, err := LoadKeys([]string{file(t, verifying...)}, file(t, privatePEM(t, signing)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}
