package server

import (
	"bufio"
	"net"
	"net/http"
	"time"

	"github.com/anykind/anykind/internal/access/fairness"
	"github.com/anykind/anykind/internal/network/conn"
	"github.com/anykind/anykind/internal/object/request"
)

// An exchange is one request on its way through the filters and back. It is the ResponseWriter of
// the handlers, and records the answer. Its Request is the one in the context of the request.
type exchange struct {
	http.ResponseWriter
	request.Request
	started time.Time
	code    int   // 0 until the header is written
	size    int64 // of the body so far
	flushed bool  // parts of it may have been sent
	// onHeader, if set, is called once with the code of the answer, before its header is written.
	onHeader func(code int)
	upgraded bool // to another protocol
	asked    access
	inside   request.Place // in a limit; nil if none
	turn     fairness.Turn
	noted    [2]request.Annotation // room for the annotations of every request
}

// A handler is a step of the filter chain.
type handler func(x *exchange, r *http.Request)

func newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, Request: request.Request{Info: request.Parse(r), Sent: r.Header}, started: time.Now()}
	x.Annotations = x.noted[:0]
	return x
}

// WriteHeader and Write record the code and the size.
func (x *exchange) WriteHeader(code int) {
	// 1xx codes precede the answer.
	if code >= http.StatusOK {
		x.begin(code)
	}
	x.ResponseWriter.WriteHeader(code)
}

// begin records the code of the answer.
func (x *exchange) begin(code int) {
	if x.code != 0 {
		return
	}
	x.code = code
	if x.onHeader != nil {
		x.onHeader(code)
	}
}

// Hijack gives the connection to a handler that switches protocols.
func (x *exchange) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(x.ResponseWriter).Hijack()
	if err == nil && x.code == 0 {
		x.upgraded = true
		if x.onHeader != nil {
			x.onHeader(http.StatusSwitchingProtocols)
		}
	}
	return c, rw, err
}

// audited returns the code for the audit log: 0 without an answer.
func (x *exchange) audited() int {
	if x.upgraded {
		return http.StatusSwitchingProtocols
	}
	return x.code
}

func (x *exchange) Write(data []byte) (int, error) {
	x.begin(http.StatusOK)
	n, err := x.ResponseWriter.Write(data)
	x.size += int64(n)
	return n, err
}

// Flush lets handlers stream.
func (x *exchange) Flush() {
	x.flushed = true
	x.begin(http.StatusOK)
	if f, ok := x.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// answered returns the code of the answer. Without an explicit one, net/http sends 200.
func (x *exchange) answered() int {
	if x.code == 0 {
		return http.StatusOK
	}
	return x.code
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// fail answers with the Status of err.
func (x *exchange) fail(r *http.Request, err error) { request.Fail(x, r, err) }

// longRunning reports whether the request has no timeout.
func (x *exchange) longRunning() bool {
	return x.Info.IsLongRunning() || under(x.Info.Path, "/debug/pprof") || x.Info.Path == backupPath || x.Info.Path == forgetPath
}

// under reports whether path is root or is below it.
func under(path, root string) bool {
	return len(path) >= len(root) && path[:len(root)] == root && (len(path) == len(root) || path[len(root)] == '/')
}

// answering announces the answer of a request whose handler is about to return, if none of it was
// flushed.
func (x *exchange) answering(r *http.Request) {
	if r.ProtoMajor >= 2 && !x.flushed && r.Method != http.MethodHead {
		conn.ExpectAnswer(r.Context(), x.size)
	}
}
