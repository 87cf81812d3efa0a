package authn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anykind/anykind/internal/object/request"
)

// elsewhere is an authenticator behind the cache that counts its calls.
type elsewhere struct {
	asked atomic.Int64
	wait  time.Duration
	do    func(token string) (*TokenAnswer, bool, error)
}

func (e *elsewhere) AuthenticateToken(ctx context.Context, token string, audiences []string) (*TokenAnswer, bool, error) {
	e.asked.Add(1)
	select {
	case <-time.After(e.wait):
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	if e.do != nil {
		return e.do(token)
	}
	if user, ok := strings.CutPrefix(token, "good "); ok {
		return &TokenAnswer{User: &request.User{Name: user}, Audiences: audiences}, true, nil
	}
	if token == "error" {
		return nil, false, errors.New("not reached")
	}
	return nil, false, nil
}

// Valid and invalid answers have their own TTL. Errors are cached only if configured.
func TestTokenCache(t *testing.T) {
	for _, tt := range []struct {
		token  string
		errors bool
		asked  [3]int64 // after 0, 5 and 10 seconds
	}{
		{"good eve", false, [3]int64{1, 1, 2}},
		{"bad", false, [3]int64{1, 2, 3}},
		{"error", false, [3]int64{2, 3, 4}},
		{"error", true, [3]int64{1, 2, 3}},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := &elsewhere{}
			c := NewTokenCache(e, TokenCacheOptions{Success: 10 * time.Second, Failure: 5 * time.Second, Errors: tt.errors})
			check := func(i int) {
				t.Helper()
				a, ok, err := c.AuthenticateToken(t.Context(), tt.token, nil)
				if want := strings.HasPrefix(tt.token, "good"); ok != want || ok && a.User.Name != "eve" || (err != nil) != (tt.token == "error") {
					t.Errorf("%s: %+v, %v, %v", tt.token, a, ok, err)
				}
				if got := e.asked.Load(); i >= 0 && got != tt.asked[i] {
					t.Errorf("%s: asked %d times in step %d, want %d", tt.token, got, i, tt.asked[i])
				}
			}
			check(-1)
			check(0)
			time.Sleep(5 * time.Second)
			check(1)
			time.Sleep(5 * time.Second)
			check(2)
		})
	}
}

// Keys differ by audience, and parts of the key cannot collide.
func TestTokenCacheKeys(t *testing.T) {
	c := NewTokenCache(nil, TokenCacheOptions{})
	seen := map[cacheKey]string{}
	for _, k := range []struct {
		token     string
		audiences []string
	}{{"a", nil}, {"a", []string{}}, {"a", []string{""}}, {"ab", nil}, {"a", []string{"b"}}, {"a", []string{"b", "c"}}, {"a", []string{"bc"}}, {"ab", []string{"c"}}, {"", []string{"a"}}} {
		key := c.key(k.token, k.audiences)
		if was := seen[key]; was != "" {
			t.Errorf("%q and %q are the same", was, fmt.Sprint(k))
		}
		seen[key] = fmt.Sprint(k)
		if key != c.key(k.token, k.audiences) {
			t.Errorf("%v is not the same twice", k)
		}
	}
	if c.key("a", nil) == NewTokenCache(nil, TokenCacheOptions{}).key("a", nil) {
		t.Error("the key of the hash is the same in two caches")
	}
}

// Concurrent requests for a token share one lookup. A request that ends does not cancel it.
func TestTokenCacheSharesLookups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &elsewhere{wait: time.Second}
		c := NewTokenCache(e, TokenCacheOptions{Success: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, _, err := c.AuthenticateToken(ctx, "good eve", nil)
			first <- err
		}()
		synctest.Wait()
		others := make(chan bool, 10)
		for range cap(others) {
			go func() {
				_, ok, _ := c.AuthenticateToken(t.Context(), "good eve", nil)
				others <- ok
			}()
		}
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for range cap(others) {
			if !<-others {
				t.Error("a request was rejected because another one was canceled")
			}
		}
		if e.asked.Load() != 1 {
			t.Errorf("asked %d times", e.asked.Load())
		}
	})
}

// A lookup that hangs times out.
func TestTokenCacheGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewTokenCache(&elsewhere{wait: time.Hour}, TokenCacheOptions{})
		begun := time.Now()
		if _, ok, err := c.AuthenticateToken(t.Context(), "good eve", nil); ok || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != sharedTimeout {
			t.Errorf("%v, %v after %v", ok, err, time.Since(begun))
		}
	})
}

// A panic becomes an error for this token, and the log does not contain the token.
func TestTokenCachePanic(t *testing.T) {
	var logged bytes.Buffer
	e := &elsewhere{do: func(token string) (*TokenAnswer, bool, error) { panic(token) }}
	c := NewTokenCache(e, TokenCacheOptions{Log: slog.New(slog.NewTextHandler(&logged, nil))})
	for range 2 {
		if _, ok, err := c.AuthenticateToken(t.Context(), "s3cret", nil); ok || err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v, %v", ok, err)
		}
	}
	if strings.Contains(logged.String(), "s3cret") || !strings.Contains(logged.String(), "tokencache_test.go") {
		t.Errorf("logged %s", &logged)
	}
}

// The cache is bounded, and invalid tokens evict no valid ones.
func TestTokenCacheIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &elsewhere{}
		c := NewTokenCache(e, TokenCacheOptions{Success: time.Hour, Failure: time.Hour})
		try := func(token string) { _, _, _ = c.AuthenticateToken(t.Context(), token, nil) }
		try("good eve")
		for i := range maxCached + 10 {
			c.keep(c.key(fmt.Sprint("bad", i), nil), &outcome{})
		}
		asked := e.asked.Load()
		try("good eve")
		if e.asked.Load() != asked || c.bad.Len() > maxCached || c.bad.Len() < maxCached/2 {
			t.Errorf("asked %d times more, %d bad ones are cached", e.asked.Load()-asked, c.bad.Len())
		}
		for range 2 {
			time.Sleep(time.Hour)
			try("bad")
		}
		if c.bad.Len() != 2 {
			t.Errorf("%d bad ones are cached after their TTL, want the last two", c.bad.Len())
		}
	})
}

func BenchmarkTokenCache(b *testing.B) {
	c := NewTokenCache(&elsewhere{}, TokenCacheOptions{Success: time.Hour, Failure: time.Hour})
	token := "good " + strings.Repeat("e", 900)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok, _ := c.AuthenticateToken(b.Context(), token, nil); !ok {
			b.Fatal("not known")
		}
	}
}

// Lookups in the cache and calls behind it are counted apart.
func TestTokenCacheMetrics(t *testing.T) {
	m := NewTokenCacheMetrics()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collectors()...)
	page := func() string {
		w := httptest.NewRecorder()
		promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	during := ""
	e := &elsewhere{}
	e.do = func(token string) (*TokenAnswer, bool, error) {
		if during = page(); token == "error" {
			return nil, false, errors.New("not reached")
		}
		return &TokenAnswer{User: &request.User{Name: token}}, true, nil
	}
	c := NewTokenCache(e, TokenCacheOptions{Success: time.Hour, Metrics: m})
	for _, token := range []string{"eve", "eve", "eve", "error"} {
		_, _, _ = c.AuthenticateToken(t.Context(), token, nil)
	}
	const prefix = "authentication_token_cache_"
	for _, tt := range []struct{ page, want string }{
		{during, `active_fetch_count{status="in_flight"} 1`},
		{during, `active_fetch_count{status="blocked"} 1`},
		{page(), `active_fetch_count{status="in_flight"} 0`},
		{page(), `active_fetch_count{status="blocked"} 0`},
		{page(), `request_total{status="hit"} 2`},
		{page(), `request_total{status="miss"} 2`},
		{page(), `request_duration_seconds_count{status="miss"} 2`},
		{page(), `fetch_total{status="ok"} 1`},
		{page(), `fetch_total{status="error"} 1`},
	} {
		if !strings.Contains(tt.page, prefix+tt.want+"\n") {
			t.Errorf("there is no %s", tt.want)
		}
	}
}
