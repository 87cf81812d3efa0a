package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"html/template"
	"net/http"
	"net/http/pprof"
	"slices"
	"time"

	"github.com/anykind/anykind/internal/codec"
)

// A Page is something the server can show of itself under /debug/, to those
// who may see it.
type Page struct {
	Path  string // below /debug/, without it
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
	}
	for _, page := range s.options.Pages {
		p["/debug/"+page.Path] = page.Serve
	}
	return p
}

// index lists what there is to see.
var index = template.Must(template.New("index").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>anykind: debug</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
td { vertical-align: top; padding: .15rem 1rem .15rem 0; }
</style>
</head>
<body>
<h1><a href="/">anykind</a> {{.Version.Anykind}}</h1>
<p>Serves the API of Kubernetes {{.Version.GitVersion}} since {{.Started}} ({{.Up}}).
In flight: {{.Reading}} of {{.MostReading}} reading, {{.Writing}} of {{.MostWriting}} writing.</p>
<table>
{{range .Links}}<tr><td><a href="{{.Path}}">{{.Path}}</a></td><td>{{.About}}</td></tr>
{{end}}</table>
{{if .Flags}}<p>It was started with</p>
<pre>{{range .Flags}}{{.}}
{{end}}</pre>
{{end}}</body>
</html>
`))

// links are the pages there are to see, in the order of their paths.
func (s *Server) links() []Page {
	links := []Page{
		{Path: "/livez?verbose", About: "whether it should be restarted"},
		{Path: "/readyz?verbose", About: "whether to send it requests"},
		{Path: "/metrics", About: "numbers for Prometheus"},
		{Path: "/version", About: "what is running"},
		{Path: profiles, About: "profiles of the Go runtime"},
		{Path: profiles + "goroutine?debug=2", About: "what every goroutine is doing"},
		{Path: profiles + "profile?seconds=5", About: "where the CPU time of the next five seconds goes"},
	}
	for _, p := range s.options.Pages {
		links = append(links, Page{Path: "/debug/" + p.Path, About: p.About})
	}
	slices.SortStableFunc(links, func(a, b Page) int { return cmp.Compare(a.Path, b.Path) })
	return links
}

// serveIndex shows a person what there is to see, and tells a program in the form
// in which Kubernetes tells the paths at /.
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
	var page bytes.Buffer
	err := index.Execute(&page, map[string]any{
		"Version":     BuildVersion(),
		"Started":     s.started.UTC().Format(time.RFC3339),
		"Up":          time.Since(s.started).Round(time.Second),
		"Reading":     s.reading.inside.Load(),
		"MostReading": s.reading.limit,
		"Writing":     s.writing.inside.Load(),
		"MostWriting": s.writing.limit,
		"Links":       links,
		"Flags":       s.options.Flags,
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write(page.Bytes())
}
