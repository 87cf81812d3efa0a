package openapi

import (
	"crypto/sha512"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/object/groupversion"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate/published"
)

// The formats of OpenAPI v2.
const (
	v2JSON     = "application/json"
	v2Protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
)

// wholeForms are the media types that clients accept. The second is an older name and not a valid
// media type.
var wholeForms = []openapiForm{
	{v2JSON, v2JSON},
	{"application/com.github.proto-openapi.spec.v2@v1.0+protobuf", v2Protobuf},
	{v2Protobuf, v2Protobuf},
}

// A wholeDocument is the cached document of /openapi/v2.
type wholeDocument struct {
	*openDocument
	checked bool                   // against the current Set
	others  []published.DocumentV2 // documents that were merged, without their JSON
}

// serveWhole answers /openapi/v2.
//
// The document is as large as all Definitions together. It is compressed while it is built, one
// resource at a time, and only the compressed form is cached. Its ETag is known before it is
// built.
func (h *Handler) serveWhole(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Add("Vary", "Accept-Encoding")
	header.Add("Vary", "Accept")
	form := openForm(r.Header.Get("Accept"), wholeForms)
	if form == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	wholes := h.options.Aggregated.DocumentsV2(r.Context())
	set, shared, d := h.v2Document(wholes)
	header.Set("Content-Type", form)
	header.Set("ETag", strconv.Quote(d.hash))
	if d.matches(r) {
		packed{}.serve(w, r, time.Time{}, false)
		return
	}
	body, made := d.form(form, func(w io.Writer) { h.options.writeWhole(w, form, set, shared, wholes) })
	// Conditions on the time are ignored: they cannot distinguish two documents of one second.
	header.Set("Last-Modified", made.UTC().Format(http.TimeFormat))
	body.serve(w, r, time.Time{}, true)
}

// matches reports whether the client has this document, which then need not be built.
func (d *openDocument) matches(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	for etag := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if etag = strings.TrimPrefix(strings.TrimSpace(etag), "W/"); etag == "*" || etag == strconv.Quote(d.hash) {
			return r.Header.Get("If-Match") == "" && r.Header.Get("If-Unmodified-Since") == ""
		}
	}
	return false
}

// v2Document returns the document and its inputs.
func (h *Handler) v2Document(others []published.DocumentV2) (*resource.Set, *shared, *openDocument) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.follow()
	c := &h.cache
	c.used = h.touch()
	if c.shared == nil {
		c.shared = &shared{release: h.options.Release, cbor: h.options.CBOR, noEnums: h.options.NoEnums}
	}
	if !c.whole.checked || !sameWholes(c.whole.others, others) {
		c.fingerprints.Retain(set)
		if hash := h.wholeHash(set, others); c.whole.openDocument == nil || hash != c.whole.hash {
			c.whole.openDocument = &openDocument{hash: hash}
		}
		c.whole.checked, c.whole.others = true, withoutJSON(others)
	}
	return set, c.shared, c.whole.openDocument
}

// wholeHash returns the hash of a Set's document.
func (h *Handler) wholeHash(set *resource.Set, others []published.DocumentV2) string {
	var prints []fingerprint
	for d, v := range everything(set) {
		prints = append(prints, h.fingerprint(d, v))
	}
	sort.SliceStable(prints, func(i, k int) bool { return slices.Compare(prints[i][:], prints[k][:]) < 0 })
	hash := sha512.New()
	fmt.Fprintf(hash, "%s\n%s\nv2\n", h.options.identity(), h.options.Pages)
	for _, p := range prints {
		hash.Write(p[:])
	}
	withSums(hash, others)
	return fmt.Sprintf("%X", hash.Sum(nil))
}

// writeWhole writes the document in one of its formats.
func (o *Options) writeWhole(w io.Writer, form string, set *resource.Set, s *shared, wholes []published.DocumentV2) {
	s.prepare()
	others := s.gather(wholes, set)
	out := &v2Writer{w: w, protobuf: form == v2Protobuf}
	out.begin()
	out.field("swagger", "2.0")
	out.field("info", s.info())
	names := map[*resource.Version]modelName{}
	for name, make := range s.definitions(set, names) {
		if d, ok := others.shared(name); ok {
			out.entry("definitions", name, d)
		} else {
			out.entry("definitions", name, make())
		}
	}
	others.writeDefinitions(out)
	parameters := maps.Clone(s.params.shared)
	s.writePaths(out, o, set, names, parameters)
	others.writePaths(out)
	others.addParameters(parameters)
	out.field("parameters", parameters)
	out.field("securityDefinitions", bearerToken())
	out.field("security", []fields{{"BearerToken": []string{}}})
	out.end()
}

// A modelName has the names of the schemas of a resource and of its list.
type modelName struct{ item, list string }

// definitions yields all schemas, each with its builder, one resource after the other. It records
// the names of the resources' schemas in names.
func (s *shared) definitions(set *resource.Set, names map[*resource.Version]modelName) iter.Seq2[string, func() fields] {
	return func(yield func(string, func() fields) bool) {
		written := map[string]bool{}
		for _, name := range sortedNames(s.components) {
			written[name] = true
			if !yield(name, func() fields { return s.component(name) }) {
				return
			}
		}
		add := func(v *resource.Version, typed bool) bool {
			m := s.model(v, typed)
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
				if !yield(name, func() fields { return form(m.Schemas[name]) }) {
					return false
				}
			}
			return true
		}
		for d, v := range everything(set) {
			if !add(v, d.Dialect.TypedOpenAPI) {
				return
			}
			for body := range bodies(v) {
				if !add(body, d.Dialect.TypedOpenAPI) {
					return
				}
			}
		}
	}
}

// component returns the definition of a shared schema.
func (s *shared) component(name string) fields {
	f := v2Native(s.components[name].schema)
	if kind, common := strings.CutPrefix(name, metaPrefix); common && (name == deleteOptions || name == watchEvent) {
		f["x-kubernetes-group-version-kind"] = kinds(kind, groupversion.OfServer())
	}
	return f
}

// everything yields all resources that OpenAPI describes.
func everything(set *resource.Set) iter.Seq2[*resource.Definition, *resource.Version] {
	return func(yield func(*resource.Definition, *resource.Version) bool) {
		for _, g := range set.Groups() {
			for _, version := range g.Versions {
				for d, v := range described(g, version) {
					if !yield(d, v) {
						return
					}
				}
			}
		}
	}
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
