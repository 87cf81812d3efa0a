// Package rest serves objects over HTTP. For each request it finds the Definition, calls
// the registry, and writes the answer.
//
// It knows paths, verbs, queries and media types. Filters have authorized the request
// before; the registry decides what a write does to an object.
package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/protobuf"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// MaxBody is how many bytes of a request body are read unless Options say otherwise.
const MaxBody = 3 << 20

// maxExpected is how much room is made for a body before any of it is there.
const maxExpected = 64 << 10

// staleRetries is how often a write starts over because what it relied on
// changed under it.
const staleRetries = 10

// Handler answers requests for objects.
type Handler struct {
	registry *registry.Registry
	catalog  *resource.Catalog
	options  Options
	gzips    gzips
	chunks   sync.Pool // of *chunk, for watches
	sent     sentEvents
	types    protobuf.Types
}

// Options of a Handler. All may be left out.
type Options struct {
	// Refresh returns once the catalog has everything that was committed before
	// the call. It is called before the Handler says that something is not
	// served.
	Refresh func(context.Context) error
	// MaxBody is how many bytes of a request body are read; MaxBody if 0.
	MaxBody int64
	// BookmarkEvery is how often a watch that wants them gets a bookmark.
	BookmarkEvery time.Duration
	// MinWatch is how long a watch lasts at least that does not say; it lasts
	// up to twice that.
	MinWatch time.Duration
}

// New returns a Handler for the resources in catalog.
func New(r *registry.Registry, catalog *resource.Catalog, o Options) *Handler {
	if o.Refresh == nil {
		o.Refresh = func(context.Context) error { return nil }
	}
	if o.BookmarkEvery == 0 {
		o.BookmarkEvery = time.Minute
	}
	if o.MaxBody == 0 {
		o.MaxBody = MaxBody
	}
	if o.MinWatch == 0 {
		o.MinWatch = 30 * time.Minute
	}
	return &Handler{registry: r, catalog: catalog, options: o, sent: sentEvents{catalog: catalog}}
}

// A call is an HTTP request of which is known what it is about.
type call struct {
	*http.Request
	w      http.ResponseWriter
	info   request.Info
	target registry.Target
	below  string // the subresource: the rest of the path
	body   []byte
	most   int64 // bytes of a body
	read   bool
	unread error // why it could not be read
	warned warnings
	types  *protobuf.Types
}

// ServeHTTP answers a request for a resource, and says of any other that there
// is nothing at its path.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &call{Request: r, w: w, info: request.InfoOf(r), most: h.options.MaxBody, warned: warnings{header: w.Header()}, types: &h.types}
	if !req.info.IsLongRunning() && takesGzip(r) {
		c := &compressor{ResponseWriter: w, gzips: &h.gzips}
		req.w = c
		h.answer(req)
		c.close()
		return
	}
	h.answer(req)
}

func (h *Handler) answer(r *call) {
	err := h.serve(r)
	switch {
	case err == nil:
	case errors.Is(err, errNoPath) && r.info.IsResource && !rootless(r.URL.Path) && h.catalog.Set().Group(r.info.Group).Dialect().NoPathIsStatus:
		request.Fail(r.w, r.Request, status.NoSuchPath())
	case errors.Is(err, errNoPath):
		http.Error(r.w, "404 page not found", http.StatusNotFound)
	default:
		request.Fail(r.w, r.Request, err)
	}
}

// rootless reports whether a path is below no root of the API: no group has a part in the answer.
func rootless(path string) bool {
	return strings.HasPrefix(path, "//") || strings.HasPrefix(path, "/apis//")
}

// errNoPath says that nothing is served at a path.
var errNoPath = errors.New("404 page not found")

func (h *Handler) serve(r *call) error {
	if !r.info.IsResource || rootless(r.URL.Path) {
		return errNoPath
	}
	err := h.find(r)
	if d := r.target.Definition; d != nil && !d.Dialect.RoutesMethods && !errors.Is(err, errNoPath) {
		r.warnOfVersion()
	}
	if err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		err := h.dispatch(r)
		if !errors.Is(err, registry.ErrStale) {
			return err
		}
		if attempt == staleRetries {
			d := r.target.Definition
			return status.Conflict(d.GroupResource(), r.target.Name, err)
		}
		if err := h.options.Refresh(r.Context()); err != nil {
			return err
		}
		if err := h.find(r); err != nil {
			return err
		}
	}
}

// warnOfVersion tells the client that the version is deprecated. Of a kind that routes methods, only an
// answer of a route does so.
func (r *call) warnOfVersion() {
	if v := r.target.Version; v.Deprecated {
		r.warned.add(v.DeprecationWarning)
	}
}

// find looks up what a request is about.
func (h *Handler) find(r *call) error {
	if h.lookup(r) == nil {
		return nil
	}
	// It may have been committed a moment ago, by this server or another one.
	if err := h.options.Refresh(r.Context()); err != nil {
		return err
	}
	return h.lookup(r)
}

func (h *Handler) lookup(r *call) error {
	info := &r.info
	if strings.HasPrefix(info.Path, "//") {
		return errNoPath
	}
	d := h.catalog.Set().Lookup(info.Group, info.Resource)
	if d == nil {
		return errNoPath
	}
	v := d.Version(info.Version)
	if v == nil || !v.Served || info.Verb == "proxy" && d.Dialect.RoutesSubresources {
		return errNoPath
	}
	r.target = registry.Target{Definition: d, Version: v, Name: info.Name, Subresource: info.Subresource}
	if info.Selected {
		r.target.Name = ""
	}
	var subresource *resource.Subresource
	below := info.Subresource + info.Below
	if below != "" {
		if subresource, r.below = v.SubresourceAt(below); subresource != nil {
			r.target.Subresource = subresource.Name
		}
	}
	switch {
	case d.Namespaced:
		r.target.Namespace = info.Namespace
		switch {
		case info.Namespace != "":
		case r.target.Name != "":
			return errNoPath
		case info.Verb != "list" && info.Verb != "watch":
			return noMethod(d)
		}
	case info.Namespace != "" && !(info.OfNamespace && info.Group == ""):
		return errNoPath
	}
	if n := r.target.Namespace; n == "." || n == ".." {
		return errNoPath // it would change where the keys of objects lead
	}
	if d.Dialect.RoutesMethods && r.target.Name != "" && below == "" && !slices.ContainsFunc(itemVerbs, d.Allows) {
		return errNoPath
	}
	switch {
	case below == "" || subresource != nil:
		return nil
	case d.Dialect.RoutesSubresources:
		return errNoPath
	default:
		return status.NotFound(d.GroupResource(), info.Name)
	}
}

// itemVerbs are those that have a path for each object.
var itemVerbs = []string{"get", "update", "patch", "delete"}

// noMethod says that a path is only for reading the objects of all namespaces. Where none can be read
// there is no such path.
func noMethod(d *resource.Definition) error {
	if d.Dialect.RoutesMethods && d.Allows("list") {
		return status.NoSuchMethod()
	}
	return errNoPath
}

func (h *Handler) dispatch(r *call) error {
	d, verb := r.target.Definition, r.info.Verb
	allowed := d.Allows(verb)
	connects, anyMethod := false, false
	if s := r.target.Version.Subresource(r.target.Subresource); s != nil {
		connects, anyMethod = s.Connecter != nil, s.Connecter != nil && s.PathsBelow
		allowed = slices.Contains(s.Verbs, verb) || anyMethod && verb == ""
	}
	switch routed := d.Dialect.RoutesMethods; {
	case routed && verb == "watch" && !allowed:
		return r.unwatchable()
	case routed && !(allowed && (anyMethod || r.hasRoute())):
		return status.NoSuchMethod()
	case connects && allowed:
		return h.connect(r)
	case routed:
		if err := r.route(); err != nil {
			return err
		}
		r.warnOfVersion()
	case !allowed:
		return status.MethodNotAllowed(d.GroupResource(), verb)
	}
	switch verb {
	case "get":
		return h.get(r)
	case "list":
		return h.list(r)
	case "watch":
		return h.watch(r)
	case "create":
		return h.create(r)
	case "update":
		return h.update(r)
	case "patch":
		return h.patch(r)
	case "delete":
		return h.delete(r)
	case "deletecollection":
		return h.deleteCollection(r)
	default:
		return status.MethodNotAllowed(d.GroupResource(), verb)
	}
}

// route returns the error of a request for which Kubernetes has no route, although it has the method.
func (r *call) route() error {
	if r.info.Verb == "patch" {
		if err := r.checkPatchType(r.patchType()); err != nil {
			return err
		}
	}
	return codec.OfferTo(r.Request).Route(r.Request, r.shape())
}

// unwatchable is the error of a watch of a kind that has none.
func (r *call) unwatchable() error {
	d := r.target.Definition
	switch {
	case r.info.ByPath:
		return errNoPath
	case d.Allows("list"):
		return status.MethodNotAllowed(d.GroupResource(), r.info.Verb)
	}
	return status.NoSuchMethod()
}

// hasRoute reports whether Kubernetes has a route for the method of a request, on an
// object or on all objects of a kind. Of custom kinds it has one for every method.
func (r *call) hasRoute() bool {
	if r.info.Verb == "watch" {
		return r.Method == http.MethodGet
	}
	switch r.Method {
	case http.MethodGet, http.MethodDelete:
		return true
	case http.MethodPost:
		return r.target.Name == "" || r.target.Subresource != ""
	case http.MethodPut, http.MethodPatch:
		return r.target.Name != ""
	}
	return false
}

// shape is what the request is answered with.
func (r *call) shape() codec.Shape {
	switch r.info.Verb {
	case "list":
		return codec.List
	case "watch":
		return codec.Watch
	default:
		return codec.One
	}
}

// readBody returns the body of the request, or why it cannot be read. It may be
// called again.
func (r *call) readBody() ([]byte, error) {
	if r.read {
		return r.body, r.unread
	}
	r.read = true
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 { // as the client says, who may not have as much
		body.Grow(int(min(n, maxExpected)) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(r.w, r.Body, r.most))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		r.body = body.Bytes()
	case errors.As(err, &large):
		r.unread = status.TooLarge(fmt.Sprintf("limit is %d", large.Limit))
	case r.Context().Err() != nil:
		r.unread = r.Context().Err()
	default:
		r.unread = status.BadRequest("unable to read the body of the request: %v", err)
	}
	return r.body, r.unread
}

// queryOptions reads the query of a request with one of the conversions that
// are generated for the options of the API.
func queryOptions[T any](r *call, convert func(*url.Values, *T, conversion.Scope) error) (T, error) {
	var out T
	if r.URL.RawQuery == "" {
		return out, nil
	}
	values := r.URL.Query()
	if err := convert(&values, &out, nil); err != nil {
		return out, status.BadRequest("%v", err)
	}
	return out, nil
}

// invalidOptions refuses options of the kind.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return status.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// projection is set where the client reads and writes another kind than the
// resource's.
func (r *call) projection() *resource.Projection {
	if s := r.target.Version.Subresource(r.target.Subresource); s != nil {
		return s.Projection
	}
	return nil
}

// kind describes what the client reads and writes.
func (r *call) kind() (*resource.Definition, *resource.Version) {
	return r.target.Shown()
}

// view returns how the client wants to see objects. Everything else about a request is
// looked at after that, and fits before the answer.
func (r *call) view(shape codec.Shape) (*codec.View, error) {
	d, v := r.kind()
	dialect := &r.target.Definition.Dialect
	view := &codec.View{
		APIVersion: d.APIVersion(v.Name), Kind: d.Kind, ListKind: d.ListKind,
		KindFirst: dialect.KindFirst, BareItems: dialect.BareItems, OmitsEmptyContinue: dialect.OmitsEmptyContinue, Types: r.types,
		NoTable: r.target.Creater() != nil,
	}
	if s := r.target.Version.Subresource(r.target.Subresource); s != nil && s.NoTable {
		view.NoTable = true
	}
	if dialect.Protobuf { // of the resource, whatever it shows itself as
		view.New = v.New
	}
	if err := view.Accept(r.Request, shape); err != nil {
		return nil, err
	}
	if view.Format.As == codec.Table {
		view.Columns = columnsOf(v)
	}
	return view, nil
}

// fits returns why an answer in shape cannot be shown in the view. A write that has no other error
// asks it before anything is stored.
func (r *call) fits(view *codec.View, shape codec.Shape) (err error) {
	if view.Format.As == codec.Table {
		if view.Include, err = codec.ParseInclude(r.URL.Query().Get("includeObject")); err != nil {
			return err
		}
	}
	return view.Fits(shape)
}

// columnsKey is where the columns of a version are kept with it.
type columnsKey struct{}

// columnsOf returns the columns of the Tables of a version.
func columnsOf(v *resource.Version) *codec.Columns {
	return v.Derived(columnsKey{}, func() any { return codec.NewColumns(v.TableColumns()).WithConditions(v.RowConditions) }).(*codec.Columns)
}
