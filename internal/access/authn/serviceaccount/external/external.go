// Package external is a client of an external signer of service account tokens. It speaks the
// protocol of k8s.io/externaljwt over a Unix socket.
package external

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	externaljwt "k8s.io/externaljwt/apis/v1"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
)

// A Signer is a connection to the external signer. It implements serviceaccount.Signer.
type Signer struct {
	connection *grpc.ClientConn
	client     externaljwt.ExternalJWTSignerClient
	metrics    metrics
}

// Open returns a Signer on a socket: a path, or an abstract socket that begins with "@". Calls wait
// until the external signer listens.
func Open(socket string) (*Signer, error) {
	s := &Signer{metrics: newMetrics()}
	var err error
	s.connection, err = grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}),
		grpc.WithUnaryInterceptor(s.metrics.observe))
	if err != nil {
		return nil, fmt.Errorf("while dialing grpc socket at %q: %w", socket, err)
	}
	s.client = externaljwt.NewExternalJWTSignerClient(s.connection)
	return s, nil
}

// Close ends the connection.
func (s *Signer) Close() error { return s.connection.Close() }

// Sign implements serviceaccount.Signer.
func (s *Signer) Sign(ctx context.Context, claims string) (header, signature string, err error) {
	answer, err := s.client.Sign(ctx, &externaljwt.SignJWTRequest{Claims: claims})
	s.metrics.signed.WithLabelValues(code(err)).Inc()
	return answer.GetHeader(), answer.GetSignature(), err
}

// FetchKeys implements serviceaccount.Signer.
func (s *Signer) FetchKeys(ctx context.Context) (serviceaccount.SignerKeys, error) {
	answer, err := s.client.FetchKeys(ctx, &externaljwt.FetchKeysRequest{})
	s.metrics.fetched.WithLabelValues(code(err)).Inc()
	if err != nil {
		return serviceaccount.SignerKeys{}, err
	}
	if err := answer.GetDataTimestamp().CheckValid(); err != nil {
		return serviceaccount.SignerKeys{}, fmt.Errorf("invalid data timestamp: %w", err)
	}
	at := answer.GetDataTimestamp().AsTime()
	s.metrics.fetchedAt.SetToCurrentTime()
	s.metrics.dataAt.Set(float64(at.UnixNano()) / float64(time.Second))
	out := serviceaccount.SignerKeys{At: at, RefreshSeconds: answer.GetRefreshHintSeconds()}
	for _, k := range answer.GetKeys() {
		out.Keys = append(out.Keys, serviceaccount.SignerKey{ID: k.GetKeyId(), PKIX: k.GetKey(), Unlisted: k.GetExcludeFromOidcDiscovery()})
	}
	return out, nil
}

// MaxExpiration implements serviceaccount.Signer.
func (s *Signer) MaxExpiration(ctx context.Context) (int64, error) {
	answer, err := s.client.Metadata(ctx, &externaljwt.MetadataRequest{})
	return answer.GetMaxTokenExpirationSeconds(), err
}

// Collectors returns the metrics of the calls; none for a nil Signer.
func (s *Signer) Collectors() []prometheus.Collector {
	if s == nil {
		return nil
	}
	m := s.metrics
	return []prometheus.Collector{m.signed, m.fetched, m.fetchedAt, m.dataAt, m.durations}
}

// code returns the value of the label for an outcome.
func code(err error) string { return status.Code(err).String() }
