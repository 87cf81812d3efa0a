package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/object/gate"
)

// A Check is one condition of the server's health.
type Check struct {
	Name string
	// Run returns the problem, if any. It should return at once.
	Run func(ctx context.Context) error
	// Except names the endpoints without the check: "healthz", "livez" and "readyz". A check that
	// decides whether to send requests, and not whether to restart the server, is part of readyz only.
	Except []string
}

// isHealth reports whether path is a health endpoint.
func isHealth(path string) bool {
	return under(path, "/healthz") || under(path, "/livez") || under(path, "/readyz")
}

// health returns the health endpoints. A summary has the results but not the errors; the page of
// each check has its error.
func (s *Server) health() map[string]http.Handler {
	ping := Check{Name: "ping", Run: func(context.Context) error { return nil }}
	shutdown := Check{Name: "shutdown", Run: func(context.Context) error {
		if s.draining.Err() != nil {
			return errors.New("process is shutting down")
		}
		return nil
	}, Except: []string{"healthz", "livez"}}
	all := map[string]http.Handler{}
	for _, name := range []string{"healthz", "livez", "readyz"} {
		checks := slices.Concat([]Check{ping}, s.options.Checks, []Check{shutdown})
		checks = slices.DeleteFunc(checks, func(c Check) bool { return slices.Contains(c.Except, name) })
		all["/"+name] = s.summary(name, checks)
		for _, c := range checks {
			all["/"+name+"/"+c.Name] = c
		}
	}
	return all
}

// Paths returns the public paths of a Server with these checks and feature gates.
func Paths(checks []Check, gates *gate.Set) []string {
	s := &Server{options: Options{Checks: checks, Gates: gates}}
	paths := append(slices.Collect(maps.Keys(s.health())), "/metrics", "/metrics/slis", "/version")
	for _, z := range s.zpages() {
		paths = append(paths, z.Path)
	}
	slices.Sort(paths)
	return paths
}

// ServeHTTP answers with the result of one check.
func (c Check) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := c.Run(r.Context()); err != nil {
		http.Error(w, fmt.Sprintf("internal server error: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprint(w, "ok")
}

// summary answers with the results of all checks except those that the client excludes.
func (s *Server) summary(name string, checks []Check) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		unknown := map[string]bool{}
		for _, e := range query["exclude"] {
			unknown[e] = true
		}
		var lines strings.Builder
		failed := false
		for _, c := range checks {
			if slices.Contains(query["exclude"], c.Name) {
				delete(unknown, c.Name)
				fmt.Fprintf(&lines, "[+]%s excluded: ok\n", c.Name)
				continue
			}
			err := c.Run(r.Context())
			s.slis.observe(c.Name, name, err)
			if err != nil {
				s.options.Log.Info("health check failed", "for", name, "check", c.Name, "error", err)
				fmt.Fprintf(&lines, "[-]%s failed: reason withheld\n", c.Name)
				failed = true
				continue
			}
			fmt.Fprintf(&lines, "[+]%s ok\n", c.Name)
		}
		if len(unknown) > 0 {
			names := slices.Sorted(maps.Keys(unknown))
			for i, n := range names {
				names[i] = fmt.Sprintf("%q", n)
			}
			fmt.Fprintf(&lines, "warn: some health checks cannot be excluded: no matches for %s\n", strings.Join(names, ","))
		}
		if failed {
			http.Error(w, lines.String()+name+" check failed", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !query.Has("verbose") {
			fmt.Fprint(w, "ok")
			return
		}
		fmt.Fprintf(w, "%s%s check passed\n", lines.String(), name)
	}
}
