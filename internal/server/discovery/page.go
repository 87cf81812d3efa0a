package discovery

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/page"
)

// A browser gets a page of the served kinds: all, or with ?group=GROUP those of one group with
// their definitions. Definitions require building models, so the page of all kinds omits them.

// servePage answers / with a page.
func (h *Handler) servePage(w http.ResponseWriter, r *http.Request, v *groups) {
	groups, one := v.groups, false
	if query := r.URL.Query(); query.Has("group") {
		g := v.group(query.Get("group"))
		if g == nil {
			http.NotFound(w, r)
			return
		}
		groups, one = []*group{g}, true
	}
	var p *page.Page
	if one {
		p = page.New("anykind: " + shownName(groups[0]))
		p.Add(`<h1><a href="/">anykind</a></h1>`)
	} else {
		p = page.New("anykind")
		p.Add(`<h1>anykind</h1>`)
	}
	p.Add("\n<p>%s, the API of Kubernetes %s. %s kinds are served.</p>\n<p>", h.options.Build, kubernetes.Name, strconv.Itoa(v.set.Len()))
	for _, path := range slices.Concat([]string{"/apis", "/openapi/v2", "/openapi/v3"}, h.options.Paths, []string{"/debug/"}) {
		p.Link(path, path)
		p.Add(" ")
	}
	p.Add("</p>\n")
	for _, g := range groups {
		addGroup(p, g, one)
	}
	p.Serve(w)
}

// shownName returns the name of a group for people.
func shownName(g *group) string { return cmp.Or(g.name, "core") }

// addGroup adds the kinds of a group, with details or without.
func addGroup(p *page.Page, g *group, details bool) {
	root := g.path()
	p.Add("<h2>")
	p.Link("/?group="+url.QueryEscape(g.name), shownName(g))
	p.Add(" <small>")
	p.Link(root, root)
	p.Add("</small></h2>\n")
	for _, v := range g.versions {
		if v.remote != nil {
			p.Add("<p>")
			p.Link(root+"/"+v.name, v.name)
			p.Add(" is served by the Service %s/%s.</p>\n", v.remote.Backend.Service.Namespace, v.remote.Backend.Service.Name)
		}
	}
	local := g.local()
	if local == nil {
		return
	}
	p.Add(`<table class="wide">
<tr><th>kind</th><th>names</th><th>objects are in</th><th>versions</th></tr>
`)
	for _, d := range local.Definitions {
		scope := "cluster"
		if d.Namespaced {
			scope = "namespaces"
		}
		names := strings.Join(append([]string{d.Plural}, d.ShortNames...), ", ")
		p.Add(`<tr><td>%s</td><td>%s</td><td>%s</td><td>`, d.Kind, names, scope)
		for _, v := range d.Versions {
			if v.Served {
				p.Link(root+"/"+v.Name+"/"+d.Plural, v.Name)
				p.Add(" <small>%s</small> ", subresourcesOf(v))
			}
		}
		p.Add("</td></tr>\n")
		for _, v := range d.Versions {
			if v.Served && details {
				addDetails(p, v)
			}
		}
	}
	p.Add("</table>\n")
}

func subresourcesOf(v *resource.Version) string {
	var names []string
	for i := range v.Subresources {
		names = append(names, "/"+v.Subresources[i].Name)
	}
	return strings.Join(names, " ")
}

// addDetails adds the content of the definition of a version.
func addDetails(p *page.Page, v *resource.Version) {
	description := ""
	if v.Schema != nil {
		m := v.Schema.Model()
		if s := m.Schemas[m.Name]; s != nil {
			description = s.Description
		}
	}
	p.Add(`<tr><td></td><td colspan="3"><p class="about"><b>%s</b> %s</p>`, v.Name, description)
	if v.Deprecated {
		p.Add(`<p class="about">%s</p>`, v.DeprecationWarning)
	}
	if columns := v.TableColumns(); len(columns) > 0 {
		p.Add(`<p class="about"><small>columns:</small> `)
		for _, c := range columns {
			p.Add(`<span title="%s">%s</span> `, c.Description, c.Name)
		}
		p.Add("</p>")
	}
	if len(v.SelectableFields) > 0 {
		p.Add(`<p class="about"><small>field selectors:</small> %s</p>`, strings.Join(slices.Sorted(maps.Keys(v.SelectableFields)), " "))
	}
	p.Add("</td></tr>\n")
}
