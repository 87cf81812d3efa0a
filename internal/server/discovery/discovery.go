// Package discovery serves the API groups and resources: by group, or aggregated in one document.
// Browsers get a page.
//
// It knows how Kubernetes publishes a resource.Definition, but not the Definition's behaviour;
// package openapi publishes the schemas of objects. Each answer comes from one resource.Set, so a
// client never sees half of a change. Versions of other servers are listed among the others;
// their resources come from those servers. The aggregated document also has the resources of
// other servers of the store. Large answers are built on the first request and
// dropped when idle.
package discovery

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/aggregate/published"
	"github.com/anykind/anykind/internal/server/peer"
)

// Options of a Handler. The zero value works.
type Options struct {
	// ServerAddress (host:port) is the address of the server in /api. If empty, it is the address
	// that the request came to.
	ServerAddress string
	// Paths of other handlers, for the list at /.
	Paths []string
	// Build identifies the build of the server: two builds may publish the same Definition
	// differently.
	Build string
	// Gates are the feature gates; nil for the default ones.
	Gates *gate.Set
	// Services returns the APIServices; nil for none.
	Services func(context.Context) *aggregate.Services
	// Published returns the discovery of the versions of other servers.
	Published func(context.Context, *aggregate.Services) map[schema.GroupVersion]*published.Version
	// Peers has the discovery of the other servers of the store; nil for none.
	Peers *peer.Proxy
	// Refresh is called before a 404. It returns once Catalog and Services have every write that
	// was acknowledged before the call.
	Refresh func(context.Context) error
	// Idle is the time after the last request at which cached documents are dropped. Zero is five
	// minutes.
	Idle time.Duration
}

// A Handler serves discovery. Create one with New.
type Handler struct {
	catalog *resource.Catalog
	options Options

	mu    sync.Mutex
	cache cache
}

// New returns a Handler for a Catalog.
func New(catalog *resource.Catalog, o Options) *Handler {
	if o.Idle == 0 {
		o.Idle = 5 * time.Minute
	}
	return &Handler{catalog: catalog, options: o}
}

// A question is the kind of document that a path names.
type question int

const (
	askNothing question = iota
	askIndex            // /
	askLegacy           // /api
	askGroups           // /apis
	askGroup            // /apis/GROUP
	askVersion          // /api/VERSION, /apis/GROUP/VERSION
)

// parse parses a path. group and version are those in the path.
func parse(path string) (q question, group, version string) {
	switch path {
	case "/":
		return askIndex, "", ""
	case "/api", "/api/":
		return askLegacy, "", ""
	case "/apis", "/apis/":
		return askGroups, "", ""
	}
	if rest, ok := strings.CutPrefix(path, "/api/"); ok {
		if v := strings.TrimSuffix(rest, "/"); !strings.Contains(v, "/") {
			return askVersion, "", v
		}
		return askNothing, "", ""
	}
	if rest, ok := strings.CutPrefix(path, "/apis/"); ok {
		g, v, more := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
		switch {
		case g == "" || strings.Contains(v, "/"):
		case !more:
			return askGroup, g, ""
		case v != "":
			return askVersion, g, v
		}
	}
	return askNothing, "", ""
}

// Handles reports whether a path belongs to the Handler.
func (h *Handler) Handles(path string) bool {
	q, _, _ := parse(path)
	return q != askNothing
}

// ServeHTTP answers a request whose path Handles accepts.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q, group, version := parse(r.URL.Path)
	v := h.view(r.Context())
	if !v.known(q, group, version) && h.options.Refresh != nil {
		if err := h.options.Refresh(r.Context()); err != nil {
			request.Fail(w, r, err)
			return
		}
		v = h.view(r.Context())
	}
	switch q {
	case askIndex:
		if codec.AcceptsPage(r) {
			h.servePage(w, r, v)
		} else {
			h.serveIndex(w, v)
		}
	case askLegacy:
		h.serveLegacy(w, r, v.set)
	case askGroups:
		h.serveGroups(w, r, v)
	case askGroup:
		serveGroup(w, r, v.group(group))
	case askVersion:
		h.serveVersion(w, r, v.set.Group(group), group, version)
	default:
		http.NotFound(w, r)
	}
}

// known reports whether the group or version of a path exists.
func (v *groups) known(q question, group, version string) bool {
	switch q {
	case askGroup:
		return v.group(group) != nil
	case askVersion:
		return v.set.Group(group).Serves(version)
	default:
		return true
	}
}

// answer writes a document in the format that the client accepts.
func answer(w http.ResponseWriter, r *http.Request, value runtime.Object) {
	f, err := codec.AcceptDocument(r)
	var doc []byte
	if err == nil {
		doc, err = f.RenderValue(value)
	}
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	request.AuditAnswer(r.Context(), func() ([]byte, error) { return codec.Format{}.RenderValue(value) })
	w.Header().Set("Content-Type", f.ContentType())
	_, _ = w.Write(doc)
}

// routed reports whether Kubernetes has a route for a request of one of its own pages. If not, it
// answers the request.
func routed(w http.ResponseWriter, r *http.Request) bool {
	err := codec.OfferTo(r).Route(r, codec.One)
	if r.Method != http.MethodGet {
		err = status.NoSuchMethod()
	}
	if err != nil {
		request.Fail(w, r, err)
	}
	return err == nil
}
