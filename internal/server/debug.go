package server

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"sort"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/server/page"
)

// A Page is a page under /debug/, for users that may read it.
type Page struct {
	Path  string // below /debug/
	About string // one line
	Serve http.HandlerFunc
}

const profiles = "/debug/pprof/"

// debugPages returns the pages under /debug/.
func (s *Server) debugPages() pages {
	p := pages{
		"/debug":             http.RedirectHandler("/debug/", http.StatusFound),
		"/debug/":            http.HandlerFunc(s.serveIndex),
		"/debug/pprof":       http.RedirectHandler(profiles, http.StatusFound),
		profiles:             http.HandlerFunc(pprof.Index),
		profiles + "profile": http.HandlerFunc(pprof.Profile),
		profiles + "symbol":  http.HandlerFunc(pprof.Symbol),
		profiles + "trace":   http.HandlerFunc(pprof.Trace),
		flagsPage:            http.HandlerFunc(serveFlags),
		flagsPage + "/":      http.HandlerFunc(serveFlags),
		verbosityPage:        http.HandlerFunc(s.serveVerbosity),
	}
	for _, page := range s.options.Pages {
		p["/debug/"+page.Path] = page.Serve
	}
	return p
}

// links returns the pages, sorted by path.
func (s *Server) links() []Page {
	links := []Page{
		{Path: "/livez?verbose", About: "liveness, with the result of each check"},
		{Path: "/readyz?verbose", About: "readiness, with the result of each check"},
		{Path: "/metrics", About: "metrics in the Prometheus format"},
		{Path: "/metrics/slis", About: "results of the health checks, in the Prometheus format"},
		{Path: "/version", About: "version of the server"},
		{Path: flagsPage, About: "flags that can change at run time"},
		{Path: profiles, About: "profiles of the Go runtime"},
		{Path: profiles + "goroutine?debug=2", About: "stacks of all goroutines"},
		{Path: profiles + "profile?seconds=5", About: "CPU profile of the next five seconds"},
	}
	links = append(links, s.zpages()...)
	for _, p := range s.options.Pages {
		links = append(links, Page{Path: "/debug/" + p.Path, About: p.About})
	}
	sort.SliceStable(links, func(i, k int) bool { return links[i].Path < links[k].Path })
	return links
}

// serveIndex answers a browser with a page of links, and other clients with the paths in the
// format of Kubernetes' /.
func (s *Server) serveIndex(w http.ResponseWriter, r *http.Request) {
	links := s.links()
	if !codec.AcceptsPage(r) {
		var list struct {
			Paths []string `json:"paths"`
		}
		for _, l := range links {
			list.Paths = append(list.Paths, l.Path)
		}
		data, err := json.MarshalIndent(list, "", "  ")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(data)
		return
	}
	version := BuildVersion()
	p := page.New("anykind: debug")
	p.Add(`<h1><a href="/">anykind</a> %s</h1>
<p>Serves the API of Kubernetes %s since %s (%s).
In flight: %s.</p>
<table>
`, version.Anykind, version.GitVersion, s.started.UTC().Format(time.RFC3339), time.Since(s.started).Round(time.Second).String(), s.limiter.String())
	for _, l := range links {
		p.Add("<tr><td>")
		p.Link(l.Path, l.Path)
		p.Add("</td><td>%s</td></tr>\n", l.About)
	}
	p.Add("</table>\n")
	if len(s.options.Flags) > 0 {
		p.Add("<p>It was started with</p>\n<pre>%s\n</pre>\n", strings.Join(s.options.Flags, "\n"))
	}
	p.Serve(w)
}
