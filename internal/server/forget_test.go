package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
)

// forgetful records forgotten keys.
type forgetful struct {
	keys []string
	err  error
}

func (f *forgetful) Forget(_ context.Context, key string) error {
	f.keys = append(f.keys, key)
	return f.err
}

func TestForget(t *testing.T) {
	var catalog resource.Catalog
	catalog.Swap(resource.NewSet([]*resource.Definition{
		{Plural: "secrets", Kind: "Secret", Namespaced: true, StoragePrefix: "/registry/secrets/"},
		{Plural: "nodes", Kind: "Node", StoragePrefix: "/registry/minions/"},
	}))
	store := &forgetful{}
	forget := func(ctx context.Context, _ *resource.Definition, key string) error {
		return registry.StorageError(store.Forget(ctx, key))
	}
	ask := func(method, body string, code int, words string) {
		t.Helper()
		w := httptest.NewRecorder()
		serveForget(forget, &catalog)(w, httptest.NewRequestWithContext(t.Context(), method, forgetPath, strings.NewReader(body)))
		if w.Code != code || !strings.Contains(w.Body.String(), words) {
			t.Errorf("%s %s: %d %s, want %d %s", method, body, w.Code, w.Body, code, words)
		}
	}
	const secret = `{"resource":"secrets","namespace":"default","name":"x"}`
	ask("POST", secret, 200, `"status":"Success"`)
	ask("POST", `{"group":"","resource":"nodes","name":"n"}`, 200, `"kind":"nodes"`)
	if got := strings.Join(store.keys, " "); got != "/registry/secrets/default/x /registry/minions/n" {
		t.Errorf("forgotten: %s", got)
	}
	ask("GET", secret, http.StatusMethodNotAllowed, "")
	ask("POST", `{"resource":"pots","name":"x"}`, 404, "NotFound")
	ask("POST", `{"resource":"secrets","namespace":"default"}`, 400, "name: Required value")
	ask("POST", `{"resource":"secrets","name":"x"}`, 400, "namespace: Required value")
	ask("POST", `{"resource":"nodes","namespace":"a","name":"x"}`, 400, "namespace: Invalid value")
	ask("POST", `{"resource":"secrets","namespace":"..","name":"x"}`, 400, "namespace: Invalid value")
	ask("POST", `{"resource":"secrets","namespace":"a","name":"x/y"}`, 400, "name: Invalid value")
	ask("POST", `{}`, 400, "resource: Required value")
	ask("POST", `x`, 400, "the body is no object such as")
	ask("POST", `{"name":"`+strings.Repeat("x", maxForget)+`"}`, 400, "too large")
	if len(store.keys) != 2 {
		t.Errorf("forgotten: %s", store.keys)
	}
	store.err = kv.ErrFull
	ask("POST", secret, 503, "no space left")
}
