// Package rest serves objects over HTTP. For each request it finds the Definition, calls the
// registry, and writes the answer.
//
// It knows paths, verbs, queries and media types. Filters have already authorized the request;
// the registry decides how a write changes an object.
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
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/protobuf"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/span"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// MaxBody is the default limit for the bytes of a request body.
const MaxBody = 3 << 20

// maxExpected limits the buffer that is allocated before a body arrives.
const maxExpected = 64 << 10

// staleRetries limits the retries of a write whose Definition changed meanwhile.
const staleRetries = 10

// A Handler serves objects.
type Handler struct {
	registry *registry.Registry
	catalog  *resource.Catalog
	options  Options
	turns    *turns
	chunks   sync.Pool // of *chunk, for watches
	sent     sentEvents
	shards   *shardMetrics // nil while the gate is off
	types    protobuf.Types
	// allow is allowedThen; nil without Options.Then.
	allow func(ctx context.Context, revision int64) error
}

// Options of a Handler. All are optional.
type Options struct {
	// Refresh returns once the catalog has everything that was committed before the call. It is
	// called before a 404 about a path.
	Refresh func(context.Context) error
	// MaxBody limits the bytes of a request body; 0 means the constant MaxBody.
	MaxBody int64
	// BookmarkEvery is the interval of bookmarks.
	BookmarkEvery time.Duration
	// MinWatch is the minimal duration of a watch without timeoutSeconds; the maximal one is
	// twice that.
	MinWatch time.Duration
	// Then returns an error unless the user of the request had the rights for it at a revision, too. It is
	// called for states older than the recent ones. Nil checks nothing.
	Then func(ctx context.Context, revision int64) error
	// Rights returns the rights of the user of a request. Changes need it, and so do watches with Then.
	Rights func(ctx context.Context) PastRights
	// Gates are the feature gates of the server.
	Gates *gate.Set
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
	h := &Handler{registry: r, catalog: catalog, options: o, turns: newTurns(), sent: sentEvents{catalog: catalog, gates: o.Gates}}
	if o.Then != nil {
		h.allow = h.allowedThen
	}
	if o.Gates.On(gate.ShardedListAndWatch) {
		h.shards = newShardMetrics()
	}
	return h
}

// A call is an HTTP request with its target.
type call struct {
	*http.Request
	w      http.ResponseWriter
	info   request.Info
	target registry.Target
	below  string // path below the subresource
	body   []byte
	most   int64 // limit for the body
	read   bool
	unread error // error of reading the body
	warned warnings
	types  *protobuf.Types
	gates  *gate.Set
	audit  request.Audit // nil if the request is not audited

	handled bool // a handler of the resource has the request

	turn    turn                // of a list
	unpaced http.ResponseWriter // of a list with a turn
}

// ServeHTTP answers a request for a resource, and any other with 404.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	req := &call{
		Request: r, w: w, info: request.InfoOf(r), most: h.options.MaxBody, warned: warnings{header: w.Header()}, types: &h.types,
		gates: h.options.Gates, audit: request.AuditOf(r.Context()),
	}
	if req.info.Verb != "list" {
		h.turns.other()
	}
	if !req.info.IsLongRunning() && takesGzip(r) && h.options.Gates.On(gate.APIResponseCompression) {
		c := &compressor{ResponseWriter: w, zipper: zipper{turns: h.turns}}
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
	if r.handled {
		r.auditVersion() // as in Kubernetes, the event ResponseStarted of a watch lacks it
	}
}

// rootless reports whether a path is outside the roots of the API, so that no group affects the
// answer.
func rootless(path string) bool {
	return strings.HasPrefix(path, "//") || strings.HasPrefix(path, "/apis//")
}

// errNoPath is the answer for a path that is not served.
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

// warnOfVersion warns the client that the version is deprecated. A kind that routes methods warns
// only if the request has a route.
func (r *call) warnOfVersion() {
	if v := r.target.Version; v.Deprecated {
		r.warned.add(v.DeprecationWarning)
	}
}

// find looks up the target of a request.
func (h *Handler) find(r *call) error {
	if h.lookup(r) == nil {
		return nil
	}
	// The definition may have been committed a moment ago, by this server or another one.
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
		return errNoPath // it would change the meaning of a storage key
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

// itemVerbs are the verbs with a path for each object.
var itemVerbs = []string{"get", "update", "patch", "delete"}

// noMethod returns the error for a path that only lists the objects of all namespaces. If the
// kind cannot be listed, that path does not exist.
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
	r.handled = true
	return h.within(r, verb)
}

// within handles a request within a span, if it is traced.
func (h *Handler) within(r *call, verb string) error {
	ctx, s := span.Start(r.Context(), spans[verb])
	if spans[verb] == "" || !s.IsRecording() {
		return h.handle(r, verb)
	}
	s.SetAttributes(r.described()...)
	untraced := r.Request
	r.Request = r.WithContext(ctx)
	err := h.handle(r, verb)
	r.Request = untraced
	span.End(s, err)
	return err
}

func (h *Handler) handle(r *call, verb string) error {
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
		return status.MethodNotAllowed(r.target.Definition.GroupResource(), verb)
	}
}

// route returns the error of a request for which Kubernetes has no route, although it supports
// the verb.
func (r *call) route() error {
	if r.info.Verb == "patch" {
		if err := r.checkPatchType(r.patchType()); err != nil {
			return err
		}
	}
	return codec.OfferTo(r.Request).Route(r.Request, r.shape())
}

// unwatchable returns the error for a watch of a kind without watches.
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

// hasRoute reports whether Kubernetes has a route for the method, on an object or on the
// collection of a native kind. Custom kinds have routes for all methods.
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

// shape returns the shape of the answer.
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

// readBody returns the body of the request, or the error of reading it. It may be called again.
func (r *call) readBody() ([]byte, error) {
	if r.read {
		return r.body, r.unread
	}
	r.read = true
	var body bytes.Buffer
	if n := r.ContentLength; n > 0 { // only the client's claim
		body.Grow(int(min(n, maxExpected)) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(r.w, r.Body, r.most))
	var large *http.MaxBytesError
	switch {
	case err == nil:
		r.body = body.Bytes()
		request.From(r.Context()).ReadBody(len(r.body))
	case errors.As(err, &large):
		r.unread = status.TooLarge(fmt.Sprintf("limit is %d", large.Limit))
	case r.Context().Err() != nil:
		r.unread = r.Context().Err()
	default:
		r.unread = status.BadRequest("unable to read the body of the request: %v", err)
	}
	return r.body, r.unread
}

// queryOptions reads the query of a request with a generated conversion of API options.
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

// invalidOptions returns the error for invalid options of a kind.
func invalidOptions(kind string, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return status.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: kind}, "", errs)
}

// projection returns the projection of a subresource whose kind differs from the resource's, else
// nil.
func (r *call) projection() *resource.Projection {
	if s := r.target.Version.Subresource(r.target.Subresource); s != nil {
		return s.Projection
	}
	return nil
}

// kind returns the kind that the client reads and writes.
func (r *call) kind() (*resource.Definition, *resource.Version) {
	return r.target.Shown()
}

// view returns the view that the client accepts. All other parts of a request are checked after
// it; fits checks the rest just before the answer.
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
	if dialect.Protobuf { // of the resource, whatever kind its subresource has
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

// fits returns the error if the view cannot show an answer in that shape. A write without other
// errors calls it before the commit.
func (r *call) fits(view *codec.View, shape codec.Shape) (err error) {
	if view.Format.As == codec.Table {
		if view.Include, err = codec.ParseInclude(r.URL.Query().Get("includeObject")); err != nil {
			return err
		}
	}
	return view.Fits(shape)
}

// columnsKey is the key of the cached columns of a version.
type columnsKey struct{}

// columnsOf returns the columns of a version's Tables.
func columnsOf(v *resource.Version) *codec.Columns {
	return v.Derived(columnsKey{}, func() any { return codec.NewColumns(v.TableColumns()).WithConditions(v.RowConditions) }).(*codec.Columns)
}
