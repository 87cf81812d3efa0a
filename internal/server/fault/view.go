package fault

import (
	"context"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// StaleView shows the state at a resourceVersion, like a server with a stuck cache: gets and lists return it, and watches
// send no events until the fault is removed. A watch with initial events is rejected as invalid, so its client lists.
func StaleView(resourceVersion string) Effect {
	hold := HoldEvents()
	return func(next http.Handler) http.Handler {
		next = hold(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			switch info := request.InfoOf(r); {
			case info.IsWatch() && query.Get("sendInitialEvents") == "true":
				request.Fail(w, r, status.Invalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", field.ErrorList{
					field.Forbidden(field.NewPath("sendInitialEvents"), "a stale view has no initial events"),
				}))
				return
			case (info.Verb == "get" || info.Verb == "list") && query.Get("continue") == "":
				query.Set("resourceVersion", resourceVersion)
				query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
				r = r.Clone(r.Context())
				r.URL.RawQuery = query.Encode()
			}
			next.ServeHTTP(w, r)
		})
	}
}

// HoldEvents holds the events of a watch back until the fault is removed. The watch opens at once. Watches over WebSockets are
// not held.
func HoldEvents() Effect {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if info := request.InfoOf(r); info.IsWatch() {
				w = &held{w, r.Context(), removedOf(r.Context())}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// held is a response that holds its body back.
type held struct {
	http.ResponseWriter
	ctx   context.Context
	until <-chan struct{}
}

func (h *held) released() bool {
	select {
	case <-h.until:
		return true
	default:
		return false
	}
}

func (h *held) Write(p []byte) (int, error) {
	if !h.released() {
		request.From(h.ctx).Release() // other requests need its seat
		select {
		case <-h.until:
		case <-h.ctx.Done():
			return 0, h.ctx.Err()
		}
	}
	return h.ResponseWriter.Write(p)
}

// SetWriteDeadline ignores the deadline of a write that waits here: the client is not slow.
func (h *held) SetWriteDeadline(at time.Time) error {
	if !h.released() {
		return nil
	}
	return http.NewResponseController(h.ResponseWriter).SetWriteDeadline(at)
}

// Unwrap is for http.ResponseController.
func (h *held) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// Crash executes the request, calls a function, and closes the connection without a response. The request is open until the
// function returns.
func Crash(crash func()) Effect {
	lose := LoseAnswer()
	return func(next http.Handler) http.Handler {
		return lose(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			crash()
		}))
	}
}

type removedKey struct{}

// removedOf returns a channel that is closed when the fault of the request is removed.
func removedOf(ctx context.Context) <-chan struct{} {
	removed, _ := ctx.Value(removedKey{}).(<-chan struct{})
	return removed
}
