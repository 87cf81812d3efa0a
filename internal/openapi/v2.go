package openapi

import (
	"crypto/sha512"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/builtin/groupversion"
	"github.com/anykind/anykind/internal/resource"
)

// The forms of OpenAPI v2.
const (
	v2JSON     = "application/json"
	v2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// wholeForms are what clients call them. The second is an older name, which is
// not a valid media type.
var wholeForms = []openapiForm{
	{v2JSON, v2JSON},
	{"application/com.github.proto-openapi.spec.v2@v1.0+protobuf", v2Protobuf},
	{v2Protobuf, v2Protobuf},
}

// A contentTag tells one content of /openapi/v2 from another.
type contentTag struct {
	etag    string // quoted
	since   time.Time
	checked bool // against the Set of now
}

// serveWhole answers /openapi/v2.
//
// The document is as large as all Definitions together. It is written while it
// is made, one resource at a time, and nothing of it is kept: who has it asks
// with its ETag, which is known without making it.
func (h *Handler) serveWhole(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Add("Vary", "Accept")
	form := openForm(r.Header.Get("Accept"), wholeForms)
	if form == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	set, shared, tag := h.whole()
	header.Set("Content-Type", form)
	header.Set("ETag", tag.etag)
	if tag.matches(r) {
		header.Del("Content-Type")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Last-Modified", tag.since.UTC().Format(http.TimeFormat))
	if r.Method == http.MethodHead {
		return
	}
	// An error means that nobody reads any more.
	_ = h.options.writeWhole(w, form, set, shared)
}

// matches reports whether the client has this content. It does not look at
// If-Modified-Since, which cannot tell two contents of one second apart.
func (t contentTag) matches(r *http.Request) bool {
	for etag := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if etag = strings.TrimPrefix(strings.TrimSpace(etag), "W/"); etag == t.etag || etag == "*" {
			return true
		}
	}
	return false
}

// whole returns what the document is made of.
func (h *Handler) whole() (*resource.Set, *shared, contentTag) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.follow()
	c := &h.cache
	c.used = h.touch()
	if c.shared == nil {
		c.shared = &shared{}
	}
	if !c.whole.checked {
		c.fingerprints.Retain(set)
		etag := h.wholeTag(set)
		if etag != c.whole.etag {
			c.whole = contentTag{etag: etag, since: time.Now()}
		}
		c.whole.checked = true
	}
	return set, c.shared, c.whole
}

// wholeTag returns the ETag of the document that is made of a Set.
func (h *Handler) wholeTag(set *resource.Set) string {
	var prints []fingerprint
	for _, g := range set.Groups() {
		for _, name := range g.Versions {
			for d, v := range published(g, name) {
				prints = append(prints, h.fingerprint(d, v))
			}
		}
	}
	slices.SortFunc(prints, func(a, b fingerprint) int { return slices.Compare(a[:], b[:]) })
	hash := sha512.New()
	fmt.Fprintf(hash, "%s\n%s\n%s\nv2\n", Kubernetes, h.options.Build, h.options.Pages)
	for _, p := range prints {
		hash.Write(p[:])
	}
	return strconv.Quote(fmt.Sprintf("%X", hash.Sum(nil)))
}

// writeWhole writes the document in one of its forms.
func (o *Options) writeWhole(w io.Writer, form string, set *resource.Set, s *shared) error {
	s.prepare()
	out := &v2Writer{w: w, protobuf: form == v2Protobuf}
	out.begin()
	out.field("swagger", "2.0")
	out.field("info", nativeInfo())
	names := s.writeDefinitions(out, set)
	parameters := maps.Clone(s.params.shared)
	s.writePaths(out, o, set, names, parameters)
	out.field("parameters", parameters)
	out.field("securityDefinitions", bearerToken())
	out.field("security", []fields{{"BearerToken": []string{}}})
	return out.end()
}

// A modelName is what the schemas of a resource and of its list are called.
type modelName struct{ item, list string }

// writeDefinitions writes the schemas of everything and returns what those of
// the resources are called.
func (s *shared) writeDefinitions(out *v2Writer, set *resource.Set) map[*resource.Version]modelName {
	written := map[string]bool{}
	for _, name := range sortedNames(s.components) {
		written[name] = true
		f := v2Native(s.components[name].schema)
		if kind, common := strings.CutPrefix(name, metaPrefix); common && (name == deleteOptions || name == watchEvent) {
			f["x-kubernetes-group-version-kind"] = kinds(kind, groupversion.OfServer())
		}
		out.entry("definitions", name, f)
	}
	names := map[*resource.Version]modelName{}
	write := func(v *resource.Version, typed bool) {
		m := v.Schema.Model()
		names[v] = modelName{m.Name, m.List}
		for _, name := range sortedNames(m.Schemas) {
			if written[name] {
				continue
			}
			written[name] = true
			form := v2Custom
			switch {
			case typed:
				form = v2Native
			case m.Keeps && name == m.Name:
				form = v2Open
			}
			out.entry("definitions", name, form(m.Schemas[name]))
		}
	}
	for _, g := range set.Groups() {
		for _, version := range g.Versions {
			for d, v := range published(g, version) {
				write(v, d.Dialect.TypedOpenAPI)
				for body := range bodies(v) {
					write(body, d.Dialect.TypedOpenAPI)
				}
			}
		}
	}
	return names
}

func (s *shared) writePaths(out *v2Writer, o *Options, set *resource.Set, names map[*resource.Version]modelName, parameters fields) {
	var about pathItems
	for _, name := range o.documentNames(set) {
		if g, v, _ := o.lookup(set, name); v == "" {
			about.add("/"+name+"/", s.about(name, g))
		}
	}
	out.paths(about)
	for _, g := range set.Groups() {
		for _, version := range g.Versions {
			out.paths(s.pathsOf(g.Path()+"/"+version, g, version, func(v *resource.Version) (item, list string) {
				return names[v].item, names[v].list
			}, parameters))
		}
	}
}

func (p *v2Writer) paths(items pathItems) {
	for _, i := range items {
		p.entry("paths", i.path, i.v2())
	}
}
