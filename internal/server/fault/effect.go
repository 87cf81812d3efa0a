package fault

import (
	"context"
	"net/http"
	"time"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// An Effect changes the handling of requests. next is the handler of the server.
type Effect = func(next http.Handler) http.Handler

// Refuse responds with the error that of returns. A watch receives the error as an event of a
// successful response.
func Refuse(of func(*http.Request) error) Effect {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if info := request.InfoOf(r); !info.IsWatch() {
				request.Fail(w, r, of(r))
				return
			}
			format, _ := codec.AcceptStatus(r)
			w.Header().Set("Content-Type", format.StreamContentType())
			_, _ = w.Write(format.AppendErrorFrame(nil, status.Of(of(r))))
		})
	}
}

// Delay waits before the server handles the request.
func Delay(d time.Duration) Effect {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if Wait(r.Context(), d) == nil {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// Wait waits for a time. It returns early, with an error, if ctx ends.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HangUp closes the connection without a response. The request has no effect.
func HangUp() Effect {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	}
}

// LoseAnswer executes the request and closes the connection without a response, so the client does
// not know the outcome.
func LoseAnswer() Effect {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(nowhere{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		})
	}
}

// nowhere discards a response.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
func (n nowhere) Flush()                      {}
