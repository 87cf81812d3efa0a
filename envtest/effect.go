package envtest

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/server/fault"
)

// Refuse responds with an error, such as one of k8s.io/apimachinery/pkg/api/errors. A watch
// receives the error as an event of a successful response.
func Refuse(err apierrors.APIStatus) Effect {
	return refuseWith(func(*http.Request) apierrors.APIStatus { return err })
}

func refuseWith(make func(*http.Request) apierrors.APIStatus) Effect {
	return fault.Refuse(func(r *http.Request) error { return &apierrors.StatusError{ErrStatus: make(r).Status()} })
}

// Conflict fails the request with 409, as a concurrent update would.
func Conflict() Effect {
	return refuseWith(func(r *http.Request) apierrors.APIStatus {
		info := request.InfoOf(r)
		return status.Modified(schema.GroupResource{Group: info.Group, Resource: info.Resource}, info.Name)
	})
}

// Expired fails the request with 410, as an expired resourceVersion would: a list gets an error, a
// watch gets it as its only event. The client must list again.
func Expired() Effect {
	return Refuse(apierrors.NewResourceExpired("The provided resource version is too old."))
}

// TooManyRequests responds with 429 and Retry-After in whole seconds, as an overloaded server.
func TooManyRequests(after time.Duration) Effect {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
			http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		})
	}
}

// Delay waits before the server handles the request.
func Delay(d time.Duration) Effect { return fault.Delay(d) }

// HangUp closes the connection without a response. The request has no effect.
func HangUp() Effect { return fault.HangUp() }

// LoseAnswer executes the request and closes the connection without a response, so the client does
// not know the outcome.
func LoseAnswer() Effect { return fault.LoseAnswer() }

// StaleView shows the state at a resourceVersion, like a server with a stuck cache: gets and lists return it, and watches
// send no events until the fault is removed. The Fault needs the verb read, and Always. A watch with initial events is
// rejected as invalid, so client-go lists.
func StaleView(resourceVersion string) Effect { return fault.StaleView(resourceVersion) }

// HoldEvents holds the events of a watch back until the fault is removed. The watch opens at once. With a fault for each
// resource, the order of the removals is the order in which a program sees the events of different kinds.
func HoldEvents() Effect { return fault.HoldEvents() }

// FailStore handles the request with an unavailable store. The caches of the server still work.
func FailStore() Effect { return withFailing(failing{store: true}) }

// SlowWebhooks delays webhook calls of the request. Their timeouts do not change.
func SlowWebhooks(d time.Duration) Effect { return withFailing(failing{webhooks: d}) }

// FailWebhooks fails webhook calls of the request, as an unreachable webhook would.
func FailWebhooks() Effect { return withFailing(failing{noWebhooks: true}) }

// failing marks the failing parts of the server for a request.
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

// callWebhook runs before a webhook call.
func callWebhook(ctx context.Context) error {
	f := failingOf(ctx)
	if f.noWebhooks {
		return errNoWebhook
	}
	if f.webhooks > 0 {
		return fault.Wait(ctx, f.webhooks)
	}
	return nil
}
