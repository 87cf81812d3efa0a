package envtest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// Refuse answers with an error, such as those of k8s.io/apimachinery/pkg/api/errors make. A watch
// that is refused is told as an event: the request for it is a success.
func Refuse(err apierrors.APIStatus) Effect {
	return refuseWith(func(*http.Request) apierrors.APIStatus { return err })
}

func refuseWith(make func(*http.Request) apierrors.APIStatus) Effect {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := &apierrors.StatusError{ErrStatus: make(r).Status()}
			if info := request.InfoOf(r); !info.IsWatch() {
				request.Fail(w, r, said)
				return
			}
			format := codec.AcceptStatus(r)
			w.Header().Set("Content-Type", format.StreamContentType())
			_, _ = w.Write(format.AppendErrorFrame(nil, status.Of(said)))
		})
	}
}

// Conflict answers as if somebody else had changed the object: 409, in the words of the server.
func Conflict() Effect {
	return refuseWith(func(r *http.Request) apierrors.APIStatus {
		info := request.InfoOf(r)
		return status.Modified(schema.GroupResource{Group: info.Group, Resource: info.Resource}, info.Name)
	})
}

// Expired answers that the resourceVersion is too old, 410: to a list as an error, to a watch as its
// only event. The client has to list again.
func Expired() Effect {
	return Refuse(apierrors.NewResourceExpired("The provided resource version is too old."))
}

// TooManyRequests answers as a server that has enough to do: 429, to be tried again after a while,
// which is in whole seconds.
func TooManyRequests(after time.Duration) Effect {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		})
	}
}

// Delay waits before the request is dealt with.
func Delay(d time.Duration) Effect {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if wait(r.Context(), d) == nil {
				next.ServeHTTP(w, r)
			}
		})
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// HangUp gives no answer, and does nothing: the client sees that the connection was cut.
func HangUp() Effect {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	}
}

// LoseAnswer does what is asked, and then gives no answer: the client cannot know whether it was
// done.
func LoseAnswer() Effect {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(nowhere{http.Header{}}, r)
			panic(http.ErrAbortHandler)
		})
	}
}

// nowhere is where a lost answer goes.
type nowhere struct{ header http.Header }

func (n nowhere) Header() http.Header         { return n.header }
func (n nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (n nowhere) WriteHeader(int)             {}
func (n nowhere) Flush()                      {}

// FailStore has the request dealt with while the store does not answer. What the server has in its
// caches it still knows.
func FailStore() Effect { return withFailing(failing{store: true}) }

// SlowWebhooks has the calls of webhooks that the request causes take longer. What they have of time
// is as ever.
func SlowWebhooks(d time.Duration) Effect { return withFailing(failing{webhooks: d}) }

// FailWebhooks has the calls of webhooks that the request causes fail, as if nobody was there.
func FailWebhooks() Effect { return withFailing(failing{noWebhooks: true}) }

// failing is what fails while a request is dealt with.
type failing struct {
	store      bool
	webhooks   time.Duration
	noWebhooks bool
}

type failingKey struct{}

func withFailing(f failing) Effect {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), failingKey{}, f)))
		})
	}
}

func failingOf(ctx context.Context) failing {
	f, _ := ctx.Value(failingKey{}).(failing)
	return f
}

var errNoWebhook = errors.New("connection refused")

// callWebhook is what happens before a webhook is called.
func callWebhook(ctx context.Context) error {
	f := failingOf(ctx)
	if f.noWebhooks {
		return errNoWebhook
	}
	if f.webhooks > 0 {
		return wait(ctx, f.webhooks)
	}
	return nil
}
