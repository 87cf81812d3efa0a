package server

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// The result of each check is a metric, as in other components of Kubernetes.
func TestSLIs(t *testing.T) {
	var wrong error
	o := everyone(nothing)
	o.Checks = []Check{{Name: "storage", Run: func(context.Context) error { return wrong }}}
	s := New(o)
	for _, path := range []string{"/livez", "/readyz", "/livez/storage"} {
		ask(s, "GET", path, "")
	}
	wrong = errors.New("disk on fire")
	ask(s, "GET", "/readyz", "")
	page := ask(s, "GET", "/metrics/slis", "").Body.String()
	for _, want := range []string{
		`kubernetes_healthcheck{name="storage",type="livez"} 1`,
		`kubernetes_healthcheck{name="storage",type="readyz"} 0`,
		`kubernetes_healthcheck{name="ping",type="readyz"} 1`,
		`kubernetes_healthchecks_total{name="storage",status="success",type="livez"} 1`,
		`kubernetes_healthchecks_total{name="storage",status="error",type="readyz"} 1`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("there is no %s in\n%s", want, page)
		}
	}
}

func TestHealth(t *testing.T) {
	ok := func(context.Context) error { return nil }
	bad := func(context.Context) error { return errors.New("disk on fire") }
	well := []Check{{Name: "storage", Run: ok}, {Name: "sync", Run: ok, Except: []string{"healthz", "livez"}}}
	ill := []Check{{Name: "storage", Run: bad}}
	apart := append(well, Check{Name: "loop", Run: bad, Except: []string{"readyz"}})
	notReady := []Check{{Name: "sync", Run: bad, Except: []string{"healthz", "livez"}}}
	tests := []struct {
		name   string
		checks []Check
		path   string
		code   int
		body   string
	}{
		{"well", well, "/livez", 200, "ok"},
		{"well in the old words", well, "/healthz", 200, "ok"},
		{"in detail", well, "/livez?verbose", 200, "[+]ping ok\n[+]storage ok\nlivez check passed\n"},
		{"ready in detail", well, "/readyz?verbose", 200,
			"[+]ping ok\n[+]storage ok\n[+]sync ok\n[+]shutdown ok\nreadyz check passed\n"},
		{"without some", well, "/livez?verbose&exclude=storage&exclude=z&exclude=a", 200,
			"[+]ping ok\n[+]storage excluded: ok\n" +
				"warn: some health checks cannot be excluded: no matches for \"a\",\"z\"\nlivez check passed\n"},
		{"one", well, "/livez/storage", 200, "ok"},
		{"one for readiness", well, "/readyz/shutdown", 200, "ok"},
		{"one that is not about liveness", well, "/livez/sync", 404, "404 page not found\n"},
		{"no such check", well, "/livez/nosuch", 404, "404 page not found\n"},
		{"ill", ill, "/livez", 500, "[+]ping ok\n[-]storage failed: reason withheld\nlivez check failed\n"},
		{"ill but excluded", ill, "/livez?exclude=storage", 200, "ok"},
		{"why", ill, "/livez/storage", 500, "internal server error: disk on fire\n"},
		{"only about liveness", apart, "/readyz", 200, "ok"},
		{"ill, though ready", apart, "/livez/loop", 500, "internal server error: disk on fire\n"},
		{"alive but not ready", notReady, "/livez", 200, "ok"},
		{"not ready", notReady, "/readyz", 500,
			"[+]ping ok\n[-]sync failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			o := everyone(nothing)
			o.Checks = test.checks
			w := ask(New(o), "GET", test.path, "")
			if w.Code != test.code || w.Body.String() != test.body {
				t.Errorf("answered %d %q, want %d %q", w.Code, w.Body, test.code, test.body)
			}
			if got := w.Header().Get("Content-Type"); got != "text/plain; charset=utf-8" {
				t.Errorf("Content-Type %q", got)
			}
		})
	}
}
