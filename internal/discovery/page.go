package discovery

import (
	"bytes"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/resource"
)

// A person with a browser is shown a page of what is served: all kinds, or with
// ?group=GROUP those of one group and what their definitions say of them. The
// latter takes making their models, which is why the page of everything does not.

// servePage answers / with a page.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request, set *resource.Set) {
	p := page{Build: h.options.Build, Kubernetes: compatible, Kinds: set.Len()}
	groups := set.Groups()
	if query := r.URL.Query(); query.Has("group") {
		p.One = true
		if g := set.Group(query.Get("group")); g != nil {
			groups = []*resource.Group{g}
		} else {
			http.NotFound(w, r)
			return
		}
	}
	for _, g := range groups {
		p.Groups = append(p.Groups, pageOf(g, p.One))
	}
	p.Paths = slices.Concat([]string{"/apis", "/openapi/v2", "/openapi/v3"}, h.options.Paths, []string{"/debug/"})
	var body bytes.Buffer
	if err := pageTemplate.Execute(&body, p); err != nil {
		fail(w, r, err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, _ = w.Write(body.Bytes())
}

// page is what the template is filled with.
type page struct {
	Build, Kubernetes string
	Kinds             int
	One               bool // one group only, with all about it
	Groups            []pageGroup
	Paths             []string
}

type pageGroup struct {
	Name, Path string
	Versions   []string
	Kinds      []pageKind
}

type pageKind struct {
	Kind, Names, Scope string
	Versions           []pageVersion
}

type pageVersion struct {
	Name, Path   string
	Subresources string
	// What follows is of one group only.
	Description, Deprecated string
	Columns                 []resource.Column
	Fields                  []string
}

func pageOf(g *resource.Group, details bool) pageGroup {
	out := pageGroup{Name: g.Name, Path: "/" + rootOf(g.Name), Versions: g.Versions}
	for _, d := range g.Definitions {
		k := pageKind{Kind: d.Kind, Names: strings.Join(append([]string{d.Plural}, d.ShortNames...), ", "), Scope: "cluster"}
		if d.Namespaced {
			k.Scope = "namespaces"
		}
		for _, v := range d.Versions {
			if v.Served {
				k.Versions = append(k.Versions, versionOf(d, v, out.Path, details))
			}
		}
		out.Kinds = append(out.Kinds, k)
	}
	return out
}

func versionOf(d *resource.Definition, v *resource.Version, root string, details bool) pageVersion {
	out := pageVersion{Name: v.Name, Path: root + "/" + v.Name + "/" + d.Plural}
	var names []string
	for i := range v.Subresources {
		names = append(names, "/"+v.Subresources[i].Name)
	}
	out.Subresources = strings.Join(names, " ")
	if !details {
		return out
	}
	if v.Schema != nil {
		m := v.Schema.Model()
		if s := m.Schemas[m.Name]; s != nil {
			out.Description = s.Description
		}
	}
	if v.Deprecated {
		out.Deprecated = v.DeprecationWarning
	}
	out.Columns, out.Fields = v.Columns, sortedNames(v.SelectableFields)
	return out
}

var pageTemplate = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>anykind{{if .One}}: {{range .Groups}}{{or .Name "core"}}{{end}}{{end}}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; }
th { font-weight: normal; color: #666; border-bottom: 1px solid #ccc; }
h2 { font-size: 1.1rem; margin: 2rem 0 .3rem; }
p.about { margin: .2rem 0; white-space: pre-line; }
small { color: #666; }
</style>
</head>
<body>
<h1>{{if .One}}<a href="/">anykind</a>{{else}}anykind{{end}}</h1>
<p>{{.Build}}, the API of Kubernetes {{.Kubernetes}}. {{.Kinds}} kinds are served.</p>
<p>{{range .Paths}}<a href="{{.}}">{{.}}</a> {{end}}</p>
{{range .Groups}}<h2><a href="/?group={{.Name}}">{{or .Name "core"}}</a> <small><a href="{{.Path}}">{{.Path}}</a></small></h2>
<table>
<tr><th>kind</th><th>names</th><th>objects are in</th><th>versions</th></tr>
{{range .Kinds}}<tr><td>{{.Kind}}</td><td>{{.Names}}</td><td>{{.Scope}}</td><td>{{range .Versions}}<a href="{{.Path}}">{{.Name}}</a> <small>{{.Subresources}}</small> {{end}}</td></tr>
{{if $.One}}{{range .Versions}}<tr><td></td><td colspan="3"><p class="about"><b>{{.Name}}</b> {{.Description}}</p>
{{- with .Deprecated}}<p class="about">{{.}}</p>{{end}}
{{- with .Columns}}<p class="about"><small>columns:</small> {{range .}}<span title="{{.Description}}">{{.Name}}</span> {{end}}</p>{{end}}
{{- with .Fields}}<p class="about"><small>field selectors:</small> {{range .}}{{.}} {{end}}</p>{{end -}}
</td></tr>
{{end}}{{end}}{{end}}</table>
{{end}}</body>
</html>
`))
