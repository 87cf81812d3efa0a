package openapi

import (
	"bytes"
	"crypto/sha512"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate/published"
)

// A documentList is the list of all OpenAPI documents.
type documentList struct {
	others map[string]published.Document
	doc    []byte
	etag   string
	made   time.Time
}

// serveDocuments answers /openapi/v3.
func (h *Handler) serveDocuments(w http.ResponseWriter, r *http.Request) {
	l := h.documentList(h.options.Aggregated.Documents(r.Context()))
	// Kubernetes answers this in its aggregator, which sets no content type: http.ServeContent
	// detects text. The aggregator honours conditions on the time. Those cannot distinguish two
	// lists of one second, so a client could keep a list without a kind that was just created.
	w.Header().Set("ETag", l.etag)
	http.ServeContent(w, r, "", l.made, bytes.NewReader(l.doc))
}

// documentList returns the list of all documents, including those of other servers.
func (h *Handler) documentList(others map[string]published.Document) *documentList {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.follow()
	h.cache.used = h.touch()
	others = relevant(others, &h.options, set)
	if h.cache.list == nil || !maps.Equal(h.cache.list.others, others) {
		h.cache.fingerprints.Retain(set)
		h.cache.list = h.buildDocumentList(set, others)
	}
	return h.cache.list
}

func (h *Handler) buildDocumentList(set *resource.Set, others map[string]published.Document) *documentList {
	at := map[string]string{}
	for _, name := range h.options.documentNames(set) {
		if hash, ok := h.hash(set, name); ok {
			at[name] = documentURL(name, hash)
		}
	}
	for name, d := range others {
		at[name] = d.URL
	}
	doc := []byte(`{"paths":{`)
	for i, name := range sortedNames(at) {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = appendJSON(doc, name)
		doc = append(doc, `:{"serverRelativeURL":`...)
		doc = appendJSON(doc, at[name])
		doc = append(doc, '}')
	}
	doc = append(doc, `}}`...)
	return &documentList{others: others, doc: doc, etag: fmt.Sprintf(`"%X"`, sha512.Sum512(doc)), made: time.Now()}
}

// documentNames returns the names of all documents: one for each served version, and those about
// discovery, which some groups lack.
func (o *Options) documentNames(set *resource.Set) []string {
	names := append([]string{"apis", "version"}, o.Pages...)
	for _, g := range set.Groups() {
		root := g.Path()[1:]
		if g.Dialect().OpenAPIOfDiscovery {
			names = append(names, root)
		}
		for _, v := range g.Versions {
			names = append(names, root+"/"+v)
		}
	}
	return names
}

// lookup returns the group of a document, and the version if it is about one. It returns false if
// there is no such document.
func (o *Options) lookup(set *resource.Set, name string) (g *resource.Group, v string, ok bool) {
	if o.has(name) {
		return nil, "", true
	}
	group, v, ok := groupVersion(name)
	if !ok || set.Group(group) == nil {
		return nil, "", false
	}
	g = set.Group(group)
	if v != "" {
		return g, v, g.Serves(v)
	}
	return g, "", g.Dialect().OpenAPIOfDiscovery
}

// groupVersion parses the name of a document about a group or a version.
func groupVersion(name string) (group, version string, ok bool) {
	rest, ok := strings.CutPrefix(name, "apis/")
	if !ok {
		root, version, more := strings.Cut(name, "/")
		return "", version, root == "api" && more == (version != "")
	}
	group, version, more := strings.Cut(rest, "/")
	return group, version, group != "" && more == (version != "")
}

// known reports whether the Set has the group or version of a document.
func known(set *resource.Set, name string) bool {
	group, version, ok := groupVersion(name)
	if !ok {
		return true
	}
	g := set.Group(group)
	return g != nil && (version == "" || g.Serves(version))
}

// hash returns the hash of a document, before the document is built.
func (h *Handler) hash(set *resource.Set, name string) (string, bool) {
	g, v, ok := h.options.lookup(set, name)
	if !ok {
		return "", false
	}
	parts := []byte(h.options.identity() + "\n" + name + "\n")
	if v != "" {
		for _, d := range g.Definitions {
			if version := d.Version(v); version != nil && version.Served {
				f := h.fingerprint(d, version)
				parts = append(parts, f[:]...)
			}
		}
	}
	return sum(parts), true
}

func sum(data []byte) string { return fmt.Sprintf("%X", sha512.Sum512(data)) }

func documentURL(name, hash string) string { return "/openapi/v3/" + name + "?hash=" + hash }

// serveDocument answers /openapi/v3/NAME.
func (h *Handler) serveDocument(w http.ResponseWriter, r *http.Request, name string) {
	d, build, ok := h.document(name)
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	serve(w, r, name, d, build)
}

// serve answers a request for a document. build builds it if it is not cached.
func serve(w http.ResponseWriter, r *http.Request, name string, d *openDocument, build func() []byte) {
	header := w.Header()
	header.Set("Vary", "Accept")
	form := openForm(r.Header.Get("Accept"), documentForms)
	if form == "" {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	header.Set("Content-Type", form)
	header.Set("ETag", strconv.Quote(d.hash))
	if asked := r.URL.Query().Get("hash"); asked != "" {
		if asked != d.hash {
			http.Redirect(w, r, documentURL(name, d.hash), http.StatusMovedPermanently)
			return
		}
		header.Set("Cache-Control", "public, immutable")
		header.Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	if d.matches(r) {
		packed{}.serve(w, r, time.Time{}, false)
		return
	}
	body, made := d.content(form, build)
	body.serve(w, r, made, false)
}

// The formats of OpenAPI v3.
const (
	v3JSON     = "application/json"
	v3Protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
)

// documentForms are the media types that clients accept. The last is an older name and not a
// valid media type, so the answer has another one.
var documentForms = []openapiForm{
	{v3JSON, v3JSON},
	{v3Protobuf, v3Protobuf},
	{"application/com.github.proto-openapi.spec.v3@v1.0+protobuf", v3Protobuf},
}

// An openapiForm is a media type that a client accepts, and the content type of the answer.
type openapiForm struct{ asked, answered string }

// openForm returns the format that the client prefers, or "".
func openForm(accept string, forms []openapiForm) string {
	if accept == "" {
		return forms[0].answered
	}
	for _, clause := range codec.ParseAccept(accept) {
		for _, form := range forms {
			if typ, subtype, _ := strings.Cut(form.asked, "/"); clause.Matches(typ, subtype) {
				return form.answered
			}
		}
	}
	return ""
}

// document returns a document and the function that builds it.
func (h *Handler) document(name string) (d *openDocument, build func() []byte, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	set := h.follow()
	hash, ok := h.hash(set, name)
	if !ok {
		return nil, nil, false
	}
	c := &h.cache
	if d = c.documents[name]; d == nil {
		if c.documents == nil {
			c.documents = map[string]*openDocument{}
		}
		d = &openDocument{hash: hash}
		c.documents[name] = d
	}
	d.used = h.touch()
	if c.shared == nil {
		c.shared = &shared{release: h.options.Release, cbor: h.options.CBOR, noEnums: h.options.NoEnums}
	}
	s := c.shared
	return d, func() []byte {
		g, v, _ := h.options.lookup(set, name)
		return buildDocument(s, name, g, v)
	}, true
}

// An openDocument is one OpenAPI document.
type openDocument struct {
	hash string
	used time.Time // guarded by Handler.mu

	mu    sync.Mutex        // guards what follows
	forms map[string]packed // that were requested
	made  time.Time
}

// content returns the OpenAPI v3 document in one of its formats. build builds it if it is not
// cached.
func (d *openDocument) content(form string, build func() []byte) (packed, time.Time) {
	return d.form(form, func(w io.Writer) {
		body := build
		if form == v3Protobuf {
			body = func() []byte {
				if kept, ok := d.forms[v3JSON]; ok {
					return encodeV3(kept.unpack())
				}
				json := build()
				d.forms[v3JSON] = pack(json)
				return encodeV3(json)
			}
		}
		_, _ = w.Write(body())
	})
}

// form returns the document in one of its formats. write writes it if it is not cached.
func (d *openDocument) form(form string, write func(io.Writer)) (packed, time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if kept, ok := d.forms[form]; ok {
		return kept, d.made
	}
	if d.forms == nil {
		d.forms, d.made = map[string]packed{}, time.Now()
	}
	out := newPacker()
	write(out)
	d.forms[form] = out.packed()
	return d.forms[form], d.made
}
