package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/object/status"
)

// answerGrace is the time for writing the answer after the timeout of a request.
const answerGrace = 5 * time.Second

// timed ends the context of a request at its timeout, and that of a watch when the server drains.
func (s *Server) timed(next handler) handler {
	return func(x *exchange, r *http.Request) {
		if x.longRunning() {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(s.draining, cancel)()
			next(x, r.WithContext(ctx))
			return
		}
		limit, err := timeLimit(r, s.options.Timeout)
		if err != nil {
			s.auditFailure(x, r, err.Error)
			x.fail(r, err)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		c := &cutoff{controller: http.NewResponseController(x.ResponseWriter)}
		stop := context.AfterFunc(ctx, c.cut)
		defer c.end(stop)

		r = r.WithContext(ctx)
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = &timedBody{ReadCloser: r.Body, ctx: ctx}
		}
		next(x, r)
	}
}

// timeLimit returns the timeout that the client asked for, at most most.
func timeLimit(r *http.Request, most time.Duration) (time.Duration, error) {
	if r.URL.RawQuery == "" {
		return most, nil
	}
	value := r.URL.Query().Get("timeout")
	if value == "" {
		return most, nil
	}
	asked, err := time.ParseDuration(value)
	if err != nil {
		return 0, status.BadRequest("invalid timeout specified in the request URL - %s", err)
	}
	if asked > 0 && asked < most {
		return asked, nil
	}
	return most, nil
}

// A cutoff unblocks a handler that waits for a client which neither sends nor reads. net/http
// forbids the use of a connection after its handler returned, so end and cut exclude each other.
type cutoff struct {
	controller *http.ResponseController
	mu         sync.Mutex
	ended      bool
}

func (c *cutoff) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	// Writers of tests may not support deadlines.
	_ = c.controller.SetReadDeadline(time.Unix(1, 0))
	_ = c.controller.SetWriteDeadline(time.Now().Add(answerGrace))
}

func (c *cutoff) end(stop func() bool) {
	if stop() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// A timedBody replaces the error of a read that was cut off with that of the context, which
// becomes the right Status.
type timedBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = b.ctx.Err()
	}
	return n, err
}
