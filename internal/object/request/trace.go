package request

import (
	"context"
	"net/http"
	"strings"

	"github.com/anykind/anykind/internal/object/span"
)

// Headers of W3C Trace Context and Baggage, with which a trace of the client continues in the servers
// that its request calls.
const (
	traceParent = "Traceparent"
	traceState  = "Tracestate"
	baggage     = "Baggage"
)

// maxBaggage limits the bytes of a forwarded Baggage header, as W3C does.
const maxBaggage = 8192

// ContinueTrace sets the trace headers of a request that the server sends on behalf of the one in the context.
// The span of the context is their parent, and without one that of the client.
func ContinueTrace(ctx context.Context, to http.Header) {
	From(ctx).copyTrace(to)
	span.Replace(ctx, to)
}

// copyTrace copies the trace headers of the client to a request that q causes. It drops an
// invalid traceparent together with its tracestate. It may be called on nil.
func (q *Request) copyTrace(to http.Header) {
	if q == nil {
		return
	}
	if parent := q.Sent[traceParent]; len(parent) == 1 && validParent(parent[0]) {
		to[traceParent] = parent
		if state := q.Sent[traceState]; len(state) > 0 {
			to[traceState] = state
		}
	}
	if carried := q.Sent[baggage]; len(carried) == 1 && len(carried[0]) <= maxBaggage {
		to[baggage] = carried
	}
}

// validParent reports whether a traceparent has version 00 and names a trace and a span.
func validParent(s string) bool {
	const trace, span = "00-00000000000000000000000000000000", "-0000000000000000"
	flags := len(trace) + len(span) + 1
	if len(s) != flags+2 || s[:3] != "00-" || s[len(trace)] != '-' || s[flags-1] != '-' {
		return false
	}
	for _, part := range []string{s[3:len(trace)], s[len(trace)+1 : flags-1], s[flags:]} {
		if strings.Trim(part, "0123456789abcdef") != "" {
			return false
		}
	}
	return s[:len(trace)] != trace && s[len(trace):flags-1] != span && s[flags] == '0' && s[flags+1] <= '3'
}
