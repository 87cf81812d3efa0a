package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/impersonation"
	"github.com/anykind/anykind/internal/network/conn"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/api"
)

// Options say what a Server serves and to whom. The zero value of a limit is
// its default.
type Options struct {
	// API answers every path that is not a page of the server itself.
	API http.Handler
	// TLS has the serving certificate and says whether clients are asked for
	// one. The Server adds what is the same for everyone.
	TLS *tls.Config
	// ClientCAs are the authorities that clients are told of, as they are when a
	// client comes. nil tells of those that TLS has.
	ClientCAs func() *x509.CertPool
	// Authenticator says who is asking. A request it cannot say it of is a 401.
	Authenticator authn.Authenticator
	// Authorizer says whether they may.
	Authorizer authz.Authorizer
	// Offer is what media types the server speaks.
	Offer codec.Offer
	// Catalog says which resources there are, so that a metric names no other.
	Catalog *resource.Catalog

	Checks     []Check                // of health, besides ping and shutdown
	Collectors []prometheus.Collector // of metrics, besides the Server's own
	Pages      []Page                 // under /debug/
	Version    string                 // what /version says as gitVersion; empty for the program's
	Flags      []string               // what the program was started with, to be shown there
	FlagValues map[string]string      // of all flags, for /flagz
	// SetVerbosity sets how much is logged. Nil sets nothing.
	SetVerbosity func(int)

	// Within wraps what answers requests that may be made. It sees who asks, by the Request in
	// their context. Nil wraps nothing.
	Within func(http.Handler) http.Handler
	// Begun is told of every request when it begins, and what it returns when that was answered,
	// also with a refusal: the code is 0 if there was no answer. Nil is not told.
	Begun func(*http.Request, *request.Request) (answered func(code int))

	Log *slog.Logger // nil logs nothing

	StrictTransport []string // directives of the header Strict-Transport-Security; none sends no header
	GoawayChance    float64  // how likely a request by HTTP/2 is the last one on its connection

	Limits  Limits        // of requests in flight
	Metrics MetricOptions // what is shown
	Timeout time.Duration // of a request that is not a watch
}

// DefaultTimeout is the timeout of a Server whose Options have none.
const DefaultTimeout = 60 * time.Second

// A Server serves one listener.
type Server struct {
	options  Options
	http     http.Server
	chain    handler
	metrics  *metrics
	slis     *slis
	access   *accessMetrics
	reading  gate
	writing  gate
	renewing queue // of Leases
	started  time.Time
	draining context.Context // ends when the server no longer wants requests
	drain    context.CancelFunc

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
		metrics: newMetrics(o.Catalog),
		slis:    newSLIs(),
		access:  newAccessMetrics(),
		reading: gate{limit: int64(orDefault(o.Limits.Reading, DefaultReading))},
		writing: gate{limit: int64(orDefault(o.Limits.Writing, DefaultWriting))},
		started: time.Now(),

		impersonator: impersonation.New(o.Authorizer),
	}
	s.renewing = newQueue(orDefault(o.Limits.Writing, DefaultWriting))
	s.options.Timeout = orDefault(o.Timeout, DefaultTimeout)
	s.draining, s.drain = context.WithCancel(context.Background())
	var answers http.Handler = api.Table{api.At(owns, s.ownPages()), api.Everywhere(o.API)}
	if o.Within != nil {
		answers = o.Within(answers)
	}
	s.chain = s.filters(func(x *exchange, r *http.Request) { answers.ServeHTTP(x, r) })
	s.configure()
	return s
}

func orDefault[T int | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

// ServeHTTP answers one request. It lets a test do without a listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	growStack()
	x := newExchange(w, r)
	r = r.WithContext(request.With(r.Context(), &x.Request))
	s.chain(x, r)
	x.answering(r)
}

// growStack has the goroutine of a request, which is new and has little on its stack,
// get as large a stack as most requests need. Otherwise it is copied to a larger one
// again and again, with more on it each time.
//
//go:noinline
func growStack() {
	var space [8 << 10]byte
	hold(&space)
}

//go:noinline
func hold(*[8 << 10]byte) {}

// Serve answers what comes in at l until Drain, or until l fails.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.ServeTLS(s.connections.Listener(l), "", "")
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
