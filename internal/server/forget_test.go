package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// forgetful is a store with a history that records forgotten keys.
type forgetful struct {
	kv.Backend
	kv.Historian
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
	ask := func(b kv.Backend, method, body string, code int, words string) {
		t.Helper()
		w := httptest.NewRecorder()
		serveForget(b, &catalog)(w, httptest.NewRequestWithContext(t.Context(), method, forgetPath, strings.NewReader(body)))
		if w.Code != code || !strings.Contains(w.Body.String(), words) {
			t.Errorf("%s %s: %d %s, want %d %s", method, body, w.Code, w.Body, code, words)
		}
	}
	const secret = `{"resource":"secrets","namespace":"default","name":"x"}`
	ask(store, "POST", secret, 200, `"status":"Success"`)
	ask(store, "POST", `{"group":"","resource":"nodes","name":"n"}`, 200, `"kind":"nodes"`)
	if got := strings.Join(store.keys, " "); got != "/registry/secrets/default/x /registry/minions/n" {
		t.Errorf("forgotten: %s", got)
	}
	ask(store, "GET", secret, http.StatusMethodNotAllowed, "")
	ask(store, "POST", `{"resource":"pots","name":"x"}`, 404, "NotFound")
	ask(store, "POST", `{"resource":"secrets","namespace":"default"}`, 400, "name: Required value")
	ask(store, "POST", `{"resource":"secrets","name":"x"}`, 400, "namespace: Required value")
	ask(store, "POST", `{"resource":"nodes","namespace":"a","name":"x"}`, 400, "namespace: Invalid value")
	ask(store, "POST", `{"resource":"secrets","namespace":"..","name":"x"}`, 400, "namespace: Invalid value")
	ask(store, "POST", `{"resource":"secrets","namespace":"a","name":"x/y"}`, 400, "name: Invalid value")
	ask(store, "POST", `{}`, 400, "resource: Required value")
	ask(store, "POST", `x`, 400, "the body is no object such as")
	ask(store, "POST", `{"name":"`+strings.Repeat("x", maxForget)+`"}`, 400, "too large")
	ask(memkv.New(memkv.Options{}), "POST", secret, 400, "this server keeps no history: start it with --history=30d")
	if len(store.keys) != 2 {
		t.Errorf("forgotten: %s", store.keys)
	}
	store.err = kv.ErrFull
	ask(store, "POST", secret, 503, "no space left")
}
