package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
)

// Limits of a connection.
const (
	maxHeaderBytes    = 1 << 20
	readHeaderTimeout = 32 * time.Second
	idleTimeout       = 90 * time.Second
	// Most objects fit into one frame of this size.
	streamBuffer     = 256 << 10
	connectionBuffer = 4<<20 - 1 // the maximum of net/http
	// A silent HTTP/2 connection is pinged after pingAfter, so that watches of vanished clients
	// end.
	pingAfter = 30 * time.Second
	// writeStall closes an HTTP/2 connection whose client reads nothing. Such a client would not
	// read a stream reset or a ping either, and it may go on sending. On HTTP/1.1 the deadline of
	// the request closes the connection.
	writeStall = 60 * time.Second
)

// Listen listens on a TCP address. Its errors name the remedy.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("cannot listen on %s: another program is using the port; stop it or choose another port", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("cannot listen on %s: no permission to use the port; choose one above 1023", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("cannot listen on %s: this machine does not have the address", address)
	default:
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
}

// configure sets the options of HTTP and TLS.
func (s *Server) configure() {
	config := &tls.Config{}
	if s.options.TLS != nil {
		config = s.options.TLS.Clone()
	}
	s.options.Protocol.secure(config)
	if authorities := s.options.ClientCAs; authorities != nil {
		each := config.Clone()
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := each.Clone()
			now.ClientCAs = authorities()
			return now, nil
		}
	}
	s.http = http.Server{
		Handler: s,
		BaseContext: func(net.Listener) context.Context {
			return codec.Offer{CBOR: s.options.Gates.On(gate.CBORServingAndStorage)}.Context(context.Background())
		},
		TLSConfig:         config,
		Protocols:         s.options.Protocol.versions(),
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ConnContext:       s.connections.Context,
		ConnState:         s.connections.Note,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams:          cmp.Or(s.options.Protocol.Streams, defaultStreams),
			MaxReadFrameSize:              streamBuffer,
			MaxReceiveBufferPerStream:     streamBuffer,
			MaxReceiveBufferPerConnection: connectionBuffer,
			SendPingTimeout:               pingAfter,
			WriteByteTimeout:              writeStall,
		},
		// net/http logs failed handshakes and aborted connections.
		ErrorLog: slog.NewLogLogger(handshakeErrors{s.options.Log.Handler(), s.metrics.handshakes}, slog.LevelDebug),
	}
}

// handshakeErrors counts failed handshakes in the error log of net/http.
type handshakeErrors struct {
	slog.Handler
	count prometheus.Counter
}

// Enabled implements slog.Handler. Handle sees every line, to count it.
func (h handshakeErrors) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (h handshakeErrors) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "TLS handshake error from") {
		h.count.Inc()
	}
	if !h.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
