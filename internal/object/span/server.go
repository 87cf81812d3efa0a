package span

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Received returns the attributes of a request of a client, as OpenTelemetry names them.
func Received(r *http.Request) []attribute.KeyValue {
	scheme, standard := "http", "80"
	if r.TLS != nil {
		scheme, standard = "https", "443"
	}
	host, port := split(r.Host)
	with := append(common(r), attribute.String("server.address", host), attribute.String("url.scheme", scheme),
		attribute.String("url.path", r.URL.Path), attribute.String("http.target", r.URL.RequestURI()))
	if n, err := strconv.Atoi(port); err == nil && port != standard {
		with = append(with, attribute.Int("server.port", n))
	}
	peer, from := split(r.RemoteAddr)
	client, _, _ := strings.Cut(r.Header.Get("X-Forwarded-For"), ",")
	if client == "" {
		client = peer
	}
	if n, err := strconv.Atoi(from); err == nil {
		with = append(with, attribute.String("network.peer.address", peer), attribute.Int("network.peer.port", n),
			attribute.String("client.address", client))
	}
	if agent := r.UserAgent(); agent != "" {
		with = append(with, attribute.String("user_agent.original", agent))
	}
	return with
}

// methods are the values of the attribute for a method.
const methods = " CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT TRACE "

// common returns the attributes of requests in both directions.
func common(r *http.Request) []attribute.KeyValue {
	method := strings.ToUpper(r.Method)
	if !strings.Contains(methods, " "+method+" ") {
		method = "_OTHER"
	}
	_, version, _ := strings.Cut(r.Proto, "/")
	with := make([]attribute.KeyValue, 0, 16)
	with = append(with, attribute.String("http.request.method", method), attribute.String("network.protocol.version", version))
	if method != r.Method {
		with = append(with, attribute.String("http.request.method_original", r.Method))
	}
	return with
}

// split returns the host and the port of an address, which may have no port.
func split(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return strings.Trim(address, "[]"), ""
	}
	return host, port
}

// Answered sets the attributes and the status of a span of a request of a client.
func Answered(s trace.Span, code int, received, sent int64) {
	s.SetAttributes(attribute.Int("http.response.status_code", code))
	if received > 0 {
		s.SetAttributes(attribute.Int64("http.request.body.size", received))
	}
	if sent > 0 {
		s.SetAttributes(attribute.Int64("http.response.body.size", sent))
	}
	switch {
	case code >= 600:
		s.SetStatus(codes.Error, fmt.Sprintf("Invalid HTTP status code %d", code))
	case code >= http.StatusInternalServerError:
		s.SetStatus(codes.Error, "")
	}
}

// maxAuditID limits the bytes of an audit id, which the client may choose.
const maxAuditID = 64

// AuditID returns the attribute for the audit id of a request.
func AuditID(id string) attribute.KeyValue {
	return attribute.String("audit-id", id[:min(len(id), maxAuditID)])
}
