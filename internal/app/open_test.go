package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
)

// The data directory of a stopped server is served read-only. Its file stays as it is.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	a := start(t, Options{Dir: dir})
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}`
	asked(t, a, http.MethodPost, "/api/v1/namespaces/default/configmaps", body, http.StatusCreated)
	stop(t, a)
	file := filepath.Join(dir, boltkv.FileName)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, file} {
		a := start(t, Options{Open: name})
		if _, err := Start(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "is in use by another process") {
			t.Errorf("a server over the opened directory: %v", err)
		}
		const path = "/api/v1/namespaces/default/configmaps/a"
		if got := asked(t, a, http.MethodGet, path, "", http.StatusOK); !strings.Contains(got, `"k":"v"`) {
			t.Error(got)
		}
		const why = `configmaps \"a\" is forbidden: the server is read-only and serves the objects in `
		if got := asked(t, a, http.MethodDelete, path, "", http.StatusForbidden); !strings.Contains(got, why) {
			t.Error(got)
		}
		asked(t, a, http.MethodPost, "/api/v1/namespaces/default/configmaps?dryRun=All", strings.Replace(body, `"a"`, `"b"`, 1), http.StatusCreated)
		asked(t, a, http.MethodPost, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
			`{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`, http.StatusCreated)
		asked(t, a, http.MethodGet, path, "", http.StatusOK)
		stop(t, a)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the file has changed, %v", err)
	}
	stop(t, start(t, Options{Dir: dir})) // nothing holds it any more
}

// encryptionFile is the file of encryptedSecrets.
const encryptionFile = "encryption.yaml"

// encryptedSecrets encrypts Secrets. Its file is in a folder.
func encryptedSecrets(t *testing.T, folder string) Encryption {
	t.Helper()
	return Encryption{ConfigFile: write(t, filepath.Join(folder, encryptionFile), []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [{aesgcm: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}]
`))}
}

// The objects of an encrypted store are served with its configuration. Without it, they alone cannot be read.
func TestOpenEncrypted(t *testing.T) {
	dir := t.TempDir()
	keys := encryptedSecrets(t, dir)
	data := filepath.Join(dir, "data")
	a := start(t, Options{Dir: data, Encryption: keys})
	const secrets, maps = "/api/v1/namespaces/default/secrets", "/api/v1/namespaces/default/configmaps"
	asked(t, a, http.MethodPost, secrets, `{"metadata":{"name":"a"},"data":{"k":"aGlkZGVu"}}`, http.StatusCreated)
	asked(t, a, http.MethodPost, maps, `{"metadata":{"name":"a"}}`, http.StatusCreated)
	stop(t, a)

	a = start(t, Options{Open: data, Encryption: keys})
	if got := asked(t, a, http.MethodGet, secrets+"/a", "", http.StatusOK); !strings.Contains(got, "aGlkZGVu") {
		t.Error(got)
	}
	stop(t, a)
	a = start(t, Options{Open: data})
	asked(t, a, http.MethodGet, secrets+"/a", "", http.StatusInternalServerError)
	asked(t, a, http.MethodGet, maps+"/a", "", http.StatusOK)
	stop(t, a)
}

// A file that cannot be opened fails the start with its name and the reason.
func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	store, err := boltkv.Open(filepath.Join(dir, "used"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if _, err := store.Commit(t.Context(), kv.Write{Key: "/registry/a/b", Value: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, "used", boltkv.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ content, want string }{
		"missing": {"", "no such file"},
		"used":    {"", "is in use by another process; stop it or open a copy"},
		"empty":   {"nothing", "storage is damaged"},
		"text":    {strings.Repeat("text ", 10_000), "neither is a valid bbolt meta page"},
		"short":   {string(whole[:3*os.Getpagesize()]), "need more"},
	} {
		path := filepath.Join(dir, name)
		if tt.content != "" {
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a, err := Start(t.Context(), Options{Open: path})
		if err == nil {
			stop(t, a)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// asked sends a request of the administrator, and returns the answer.
func asked(t *testing.T, a *App, method, path, body string, want int) string {
	t.Helper()
	code, answer := ask(t, client(t, a, admin(t, a)), method, a.URL()+path, "", body)
	if code != want {
		t.Errorf("%s %s: %d %s", method, path, code, answer)
	}
	return answer
}
