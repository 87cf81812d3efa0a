// Package openapi serves the OpenAPI documents: version 3, with a document for each version of a
// group, and version 2, one document of everything.
//
// It knows how Kubernetes describes the operations on a resource.Definition, and uses the
// published schemas of objects (view.Model). Each answer comes from one resource.Set. A
// document is built on the first request, and cached while its Definitions are served and clients
// request it. Other servers have documents about their versions: version 3 lists them and
// forwards requests for them, and version 2 is merged into one document.
package openapi

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// Options of a Handler. The zero value works.
type Options struct {
	// Build identifies the build of the server: two builds may publish the same Definition
	// differently.
	Build string
	// Release is the release of Kubernetes in the documents; "" is kubernetes.Name.
	Release string
	// CBOR adds the media types of CBOR to built-in resources.
	CBOR bool
	// NoEnums leaves the values of enums out of built-in kinds.
	NoEnums bool
	// Pages are IssuerConfiguration and IssuerKeys, if the server has these pages.
	Pages []string
	// Aggregated are the API servers behind this one; nil for none.
	Aggregated Aggregated
	// Refresh is called before a 404. It returns once the Catalog has every write that was
	// acknowledged before the call.
	Refresh func(context.Context) error
	// Idle is the time after which an unused document is dropped. Zero is five minutes.
	Idle time.Duration
}

// A Handler serves OpenAPI. Create one with New.
type Handler struct {
	catalog *resource.Catalog
	options Options

	mu    sync.Mutex
	cache cache
}

// identity differs between servers that publish the same Definition differently.
func (o *Options) identity() string {
	name := o.Release + "\n" + o.Build
	if o.CBOR {
		name += "\nCBOR"
	}
	if o.NoEnums {
		name += "\nno enums"
	}
	return name
}

// New returns a Handler for a Catalog.
func New(catalog *resource.Catalog, o Options) *Handler {
	if o.Idle == 0 {
		o.Idle = 5 * time.Minute
	}
	o.Release = cmp.Or(o.Release, kubernetes.Name)
	if o.Aggregated == nil {
		o.Aggregated = noServers{}
	}
	return &Handler{catalog: catalog, options: o}
}

const (
	pathV2     = "/openapi/v2"
	pathV3     = "/openapi/v3"
	documentV3 = pathV3 + "/"
)

// Handles reports whether a path belongs to the Handler.
func (h *Handler) Handles(path string) bool {
	return path == pathV2 || path == pathV3 || strings.HasPrefix(path, documentV3)
}

// ServeHTTP answers a request whose path Handles accepts.
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

// other returns the handler of a document of another server.
func (h *Handler) other(r *http.Request, name string) (http.Handler, bool) {
	if _, _, local := h.options.lookup(h.catalog.Set(), name); local {
		return nil, false
	}
	d, ok := h.options.Aggregated.Documents(r.Context())[name]
	switch {
	case !ok:
		return nil, false
	case d.Hash != "":
		return h.converted(name, d), true
	default:
		return h.options.Aggregated.Forward(d.Service), true
	}
}
