package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"github.com/anykind/anykind/internal/access/audit"
	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/impersonation"
	"github.com/anykind/anykind/internal/access/fairness"
	"github.com/anykind/anykind/internal/network/conn"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/api"
	"github.com/anykind/anykind/internal/server/fault"
	"github.com/anykind/anykind/internal/store/kv"
)

// Options of a Server. The zero value of a limit is its default.
type Options struct {
	// API serves all paths other than the server's own pages.
	API http.Handler
	// TLS has the serving certificate and the policy for client certificates. The Server adds the
	// remaining settings.
	TLS *tls.Config
	// ClientCAs returns the current CAs for the certificate request to clients. With nil, the CAs
	// of TLS are sent.
	ClientCAs func() *x509.CertPool
	// Authenticator authenticates requests. It fails with 401.
	Authenticator authn.Authenticator
	// Hold returns the error for an authorized request that has to wait; nil holds none.
	Hold func(*request.Info) error
	// Authorizer authorizes requests.
	Authorizer authz.Authorizer
	// Audit is the audit log; nil for none.
	Audit *audit.Log
	// Gates are the feature gates.
	Gates *gate.Set
	// Catalog has the served resources; labels of metrics come from it.
	Catalog *resource.Catalog

	Checks     []Check                // of health, besides ping and shutdown
	Collectors []prometheus.Collector // of metrics, besides the Server's own
	Pages      []Page                 // under /debug/
	Store      kv.Backend             // for backups
	Version    string                 // gitVersion in /version; default: that of the program
	Flags      []string               // command line, for /debug/
	// Forget takes the earlier states of an object, by its key, out of the history.
	Forget func(ctx context.Context, d *resource.Definition, key string) error
	// Outcomes answers with the last outcomes of admission webhooks and policies; nil for a server without the page.
	Outcomes http.Handler
	// AllChanges answers with the newest changes of all kinds; nil for a server without the page.
	AllChanges http.HandlerFunc
	// Forks are served below their paths; nil for a server without them.
	Forks *Forks
	// Console has the pages of the console, at console.Root; nil for a server without them.
	Console http.Handler
	// Prefix precedes all paths of a fork in the requests of clients.
	Prefix string
	// Changes answers with the differences to the state that the store began with; nil for a store that began empty.
	Changes http.HandlerFunc
	// Search answers with the objects that have the words of a query; nil for a server without it.
	Search http.Handler
	// Faults makes requests fail; nil for a server without its page.
	Faults     *fault.Handler
	FlagValues map[string]string // all flags, for /flagz
	// SetVerbosity sets the log level; nil for none.
	SetVerbosity func(int)

	// Within wraps the handler behind the filters. It finds the user in the Request of the
	// context. Nil wraps nothing.
	Within func(http.Handler) http.Handler
	// Begun is called at the start of every request, and its result at the end, also of a
	// rejected request: the code is 0 without an answer. May be nil.
	Begun func(*http.Request, *request.Request) (answered func(code int))

	Log *slog.Logger // nil discards
	// Traces starts the spans of requests. Nil starts none.
	Traces trace.TracerProvider

	StrictTransport []string // directives of Strict-Transport-Security; without any, no header
	GoawayChance    float64  // probability that an HTTP/2 request is the last of its connection

	// Fairness limits the requests in flight by their priority levels. Nil limits them by Limits.
	Fairness *fairness.Dispatcher

	Limits  Limits        // of requests in flight
	Metrics MetricOptions // what is shown
	Timeout time.Duration // of a request that is not a watch

	Protocol Protocol // of the listener
}

// A Collector has metrics.
type Collector = prometheus.Collector

// DefaultTimeout is the default of Options.Timeout.
const DefaultTimeout = 60 * time.Second

// A Server serves one listener.
type Server struct {
	options  Options
	http     http.Server
	chain    handler
	metrics  *metrics
	slis     *slis
	access   *accessMetrics
	limiter  limiter
	delayed  atomic.Int64 // rejections that wait
	started  time.Time
	draining context.Context // ends when draining begins
	drain    context.CancelFunc

	backups      *backups
	connections  conn.Connections
	impersonator *impersonation.Impersonator
}

// New returns a Server that is ready to Serve.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Catalog == nil {
		o.Catalog = &resource.Catalog{}
	}
	s := &Server{
		options: o,
		metrics: newMetrics(o.Catalog, o.Gates),
		slis:    newSLIs(),
		access:  newAccessMetrics(o.Gates),
		limiter: newRooms(o.Limits),
		backups: newBackups(o.Store, o.Log),
		started: time.Now(),

		impersonator: impersonation.New(o.Authorizer, o.Gates),
	}
	if o.Fairness != nil {
		s.limiter = fair{o.Fairness}
	}
	s.options.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	s.draining, s.drain = context.WithCancel(context.Background())
	var answers http.Handler = api.Table{api.At(owns, lazy(s.ownPages)), api.Everywhere(o.API)}
	if o.Faults != nil {
		answers = o.Faults.Within(answers)
	}
	if o.Within != nil {
		answers = o.Within(answers)
	}
	s.chain = s.filters(func(x *exchange, r *http.Request) { answers.ServeHTTP(x, r) })
	s.configure()
	return s
}

// ServeHTTP answers one request, for tests without a listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	growStack()
	if s.options.Forks.serve(w, r) {
		return
	}
	x := newExchange(w, r)
	x.Prefix = s.options.Prefix
	r = r.WithContext(request.With(r.Context(), &x.Request))
	s.chain(x, r)
	x.answering(r)
}

// growStack grows the stack of a new goroutine once to the size that most requests need.
// Otherwise the runtime copies it repeatedly, larger each time.
//
//go:noinline
func growStack() {
	var space [8 << 10]byte
	hold(&space)
}

//go:noinline
func hold(*[8 << 10]byte) {}

// Serve accepts connections from l until Drain is called or l fails.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.ServeTLS(s.connections.Listener(l), "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
