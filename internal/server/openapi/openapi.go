// Package openapi serves the OpenAPI documents: version 3, with a document for each version
// of a group, and version 2, one document of everything.
//
// It knows how Kubernetes describes the operations on a resource.Definition, and uses the
// published schemas of objects (resource.Model). Each answer is made from one resource.Set. A
// document is made on the first request. It is kept while its Definitions are served and
// somebody asks for it. Other servers have documents about the versions that they serve: those of
// version 3 are listed and come from there, and version 2 has all in one.
package openapi

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// Kubernetes is the version of Kubernetes that the documents are of.
const Kubernetes = "1.37"

// Options of a Handler. The zero value works.
type Options struct {
	// Build tells one build of the server from another, because two builds may
	// publish the same Definition differently.
	Build string
	// Pages are IssuerConfiguration and IssuerKeys where there are such pages.
	Pages []string
	// Others are servers behind this one; nil for none.
	Others Others
	// Refresh is called before a document is said not to exist. It returns once
	// the Catalog has all that was acknowledged to anyone before the call.
	Refresh func(context.Context) error
	// Idle is how long after the last request for it something is forgotten.
	// Zero is five minutes.
	Idle time.Duration
}

// A Handler serves OpenAPI. It is made by New.
type Handler struct {
	catalog *resource.Catalog
	options Options

	mu    sync.Mutex
	cache cache
}

// New returns a Handler for what catalog holds.
func New(catalog *resource.Catalog, o Options) *Handler {
	if o.Idle == 0 {
		o.Idle = 5 * time.Minute
	}
	if o.Others == nil {
		o.Others = nobody{}
	}
	return &Handler{catalog: catalog, options: o}
}

const (
	pathV2     = "/openapi/v2"
	pathV3     = "/openapi/v3"
	documentV3 = pathV3 + "/"
)

// Handles reports whether a path is the Handler's to answer.
func (h *Handler) Handles(path string) bool {
	return path == pathV2 || path == pathV3 || strings.HasPrefix(path, documentV3)
}

// ServeHTTP answers a request whose path the Handler Handles.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; path {
	case pathV2:
		h.serveWhole(w, r)
	case pathV3:
		h.serveDocuments(w, r)
	default:
		name := strings.TrimPrefix(path, documentV3)
		if other, ok := h.other(r, name); ok {
			other.ServeHTTP(w, r)
			return
		}
		if !known(h.catalog.Set(), name) && h.options.Refresh != nil {
			if err := h.options.Refresh(r.Context()); err != nil {
				request.Fail(w, r, err)
				return
			}
		}
		h.serveDocument(w, r, name)
	}
}

// other returns who answers for a document that another server has.
func (h *Handler) other(r *http.Request, name string) (http.Handler, bool) {
	if _, _, local := h.options.lookup(h.catalog.Set(), name); local {
		return nil, false
	}
	d, ok := h.options.Others.Documents(r.Context())[name]
	switch {
	case !ok:
		return nil, false
	case d.Hash != "":
		return h.converted(name, d), true
	default:
		return h.options.Others.Forward(d.Service), true
	}
}
