package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/store/kv"
)

// counted counts the writes of requests.
type counted struct {
	kv.Backend
	mu     sync.Mutex
	writes []string
}

func (c *counted) Unwrap() kv.Backend { return c.Backend }

func (c *counted) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if q := request.From(ctx); q != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.writes = append(c.writes, q.User.Name+" "+w.Key)
	}
	return c.Backend.Commit(ctx, w)
}

// After WaitIdle, the controllers have handled all writes, and the hooks have seen all requests.
func TestSettle(t *testing.T) {
	store := &counted{}
	var mu sync.Mutex
	var answered []int
	a := start(t, Options{Hooks: Hooks{
		Store: func(b kv.Backend) kv.Backend { store.Backend = b; return store },
		Answer: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if q := request.From(r.Context()); q.Info.Name == "teapot" {
					w.WriteHeader(http.StatusTeapot)
					return
				}
				next.ServeHTTP(w, r)
			})
		},
		Request: func(*http.Request, *request.Request) func(int) {
			return func(code int) {
				mu.Lock()
				defer mu.Unlock()
				answered = append(answered, code)
			}
		},
	}})
	defer stop(t, a)
	c, namespaces := client(t, a, admin(t, a)), a.URL()+"/api/v1/namespaces"
	for _, step := range []struct {
		method, url, body string
		code              int
	}{
		{"POST", namespaces, `{"metadata":{"name":"team"}}`, 201},
		{"GET", namespaces + "/teapot", "", 418},
		{"DELETE", namespaces + "/team", "", 200},
	} {
		if code, said := ask(t, c, step.method, step.url, "", step.body); code != step.code {
			t.Fatalf("%s %s: %d %s", step.method, step.url, code, said)
		}
	}
	if err := a.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, said := ask(t, c, "GET", namespaces+"/team", "", ""); code != 404 {
		t.Errorf("%d %s", code, said)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []int{201, 418, 200, 404}; !slices.Equal(answered, want) {
		t.Errorf("answered: %v, want %v", answered, want)
	}
	if len(store.writes) != 2 || !strings.HasSuffix(store.writes[0], " /registry/namespaces/team") {
		t.Errorf("written: %q", store.writes)
	}
}

// An App with a task to retry is not idle.
func TestSettleWaitsForRetries(t *testing.T) {
	a := start(t, Options{Hooks: Hooks{Store: func(b kv.Backend) kv.Backend { return &stubborn{b} }}})
	defer stop(t, a)
	c, namespaces := client(t, a, admin(t, a)), a.URL()+"/api/v1/namespaces"
	if code, said := ask(t, c, "POST", namespaces, "", `{"metadata":{"name":"stubborn"}}`); code != 201 {
		t.Fatalf("%d %s", code, said)
	}
	if code, said := ask(t, c, "DELETE", namespaces+"/stubborn", "", ""); code != 200 {
		t.Fatalf("%d %s", code, said)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := a.WaitIdle(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// stubborn rejects the writes of controllers to the namespace.
type stubborn struct{ kv.Backend }

func (s *stubborn) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if request.From(ctx) == nil && w.Key == "/registry/namespaces/stubborn" {
		return 0, kv.ErrUnavailable
	}
	return s.Backend.Commit(ctx, w)
}

// Apps that start from a snapshot have its objects, and are independent afterwards.
func TestFromSnapshot(t *testing.T) {
	first := start(t, Options{})
	defer stop(t, first)
	if code, said := ask(t, client(t, first, admin(t, first)), "POST", first.URL()+"/api/v1/namespaces", "", `{"metadata":{"name":"team"}}`); code != 201 {
		t.Fatalf("%d %s", code, said)
	}
	taken, err := first.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	second := start(t, Options{From: taken})
	defer stop(t, second)
	if code, said := ask(t, client(t, second, admin(t, second)), "GET", second.URL()+"/api/v1/namespaces/team", "", ""); code != 200 {
		t.Errorf("%d %s", code, said)
	}
	kept := start(t, Options{Dir: t.TempDir()})
	defer stop(t, kept)
	if _, err := kept.Snapshot(); err == nil {
		t.Error("there is a snapshot of a store on disk")
	}
}
