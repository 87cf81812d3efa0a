// Package convert converts objects between versions of their kind by calling a webhook.
//
// It knows ConversionReview and the limits of a conversion: a webhook must not change the identity of
// an object or the metadata that belongs to the server. It does not know the connection to a webhook,
// or schemas: versions that differ only in their schemas need no conversion.
package convert

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
)

const (
	// Timeout of one call.
	Timeout = 30 * time.Second
	// maxObjects and maxRequest limit one call. A longer list takes several calls.
	maxObjects = 256
	maxRequest = 4 << 20
	// A response may be replyFactor times as large as its request plus replyMore bytes. Objects may
	// grow, a single one by the size of the largest object that a client can write, but not by an
	// order of magnitude.
	replyFactor = 3
	replyMore   = 4 << 20
)

// A Poster posts to webhooks. webhook.Client implements it.
type Poster interface {
	Post(ctx context.Context, config *webhook.Config, call webhook.Call) (webhook.Reply, error)
}

// A Webhook converts the objects of one resource. Its configuration is immutable, and it is safe for
// concurrent use.
type Webhook struct {
	Poster Poster
	Config webhook.Config
	Group  string
	// ReviewVersions of ConversionReview that the webhook understands, the
	// preferred one first.
	ReviewVersions []string
	// Metrics may be nil.
	Metrics *Metrics

	kept kept
}

// Convert returns objects, which it may change, in another version and in the same order. Objects of
// that version are returned unchanged. If one conversion fails, all fail.
func (w *Webhook) Convert(ctx context.Context, objects []map[string]any, version string) ([]map[string]any, error) {
	want := schema.GroupVersion{Group: w.Group, Version: version}
	out := make([]map[string]any, len(objects))
	b := batch{}
	for i, o := range objects {
		switch {
		case object.APIVersion(o) == want.String():
			out[i] = o
			continue
		case Empty(o):
			o["apiVersion"] = want.String()
			out[i] = o
			continue
		}
		data := object.AppendJSON(nil, o)
		if len(b.objects) > 0 && (len(b.objects) == maxObjects || b.size+len(data) > maxRequest) {
			if err := w.flush(ctx, &b, want, out); err != nil {
				return nil, err
			}
		}
		b.add(i, o, data)
	}
	if err := w.flush(ctx, &b, want, out); err != nil {
		return nil, err
	}
	return out, nil
}

// Empty reports whether an object has nothing to convert. Accounts of managed fields start from empty
// objects.
func Empty(o map[string]any) bool {
	for name, v := range o {
		switch name {
		case "apiVersion", "kind":
		case "metadata":
			if m, ok := v.(map[string]any); !ok || len(m) > 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// A batch holds the objects of one call.
type batch struct {
	objects []map[string]any
	encoded [][]byte
	at      []int // indexes in the result
	size    int
}

func (b *batch) add(i int, o map[string]any, data []byte) {
	b.objects = append(b.objects, o)
	b.encoded = append(b.encoded, data)
	b.at = append(b.at, i)
	b.size += len(data)
}

// flush converts a batch into out and clears it.
func (w *Webhook) flush(ctx context.Context, b *batch, want schema.GroupVersion, out []map[string]any) error {
	if len(b.objects) == 0 {
		return nil
	}
	start := time.Now()
	converted, err := w.call(ctx, b, want)
	w.Metrics.observe(start, err)
	if err != nil {
		return err
	}
	for i, at := range b.at {
		out[at] = converted[i]
	}
	*b = batch{}
	return nil
}

// A failure is the failed step of a conversion, for metrics.
type failure struct {
	sort string
	error
}

func (f *failure) Unwrap() error { return f.error }

// The kinds of failures, as Kubernetes names them.
const (
	callFailed    = "conversion_webhook_call_failure"
	malformed     = "conversion_webhook_malformed_response_failure"
	partial       = "conversion_webhook_partial_response_failure"
	invalidObject = "conversion_webhook_invalid_converted_object_failure"
)

func sortOf(err error) string {
	var f *failure
	if errors.As(err, &f) {
		return f.sort
	}
	return callFailed
}

// call converts the objects of one batch.
func (w *Webhook) call(ctx context.Context, b *batch, want schema.GroupVersion) ([]map[string]any, error) {
	// Kubernetes names a conversion by its first, or only, object.
	from := schema.FromAPIVersionAndKind(object.APIVersion(b.objects[0]), object.Kind(b.objects[0]))
	r, err := newReview(w.ReviewVersions, want.String(), b.encoded)
	if err != nil {
		return nil, err
	}
	reply, err := w.Poster.Post(ctx, &w.Config, webhook.Call{
		Body: r.body, Timeout: Timeout, MaxReply: replyFactor*int64(len(r.body)) + replyMore,
	})
	switch {
	case status.Is(err, metav1.StatusReasonTooManyRequests):
		return nil, &failure{callFailed, err}
	case err != nil:
		if ctx.Err() == nil {
			w.kept.drop()
		}
		// It is not wrapped: a status from the webhook must not become the status of the response.
		return nil, &failure{callFailed, fmt.Errorf("conversion webhook for %v failed: %v", from, err)}
	}
	w.kept.saw(reply.Peer)
	answers, err := r.read(reply.Body)
	if err != nil {
		// A webhook that rejects an object still works. Its conversions of other objects stay valid.
		var refused *refusal
		if !errors.As(err, &refused) {
			w.kept.drop()
		}
		return nil, &failure{malformed, fmt.Errorf("conversion webhook for %v failed: %w", from, err)}
	}
	if len(answers) != len(b.objects) {
		return nil, &failure{partial, fmt.Errorf("conversion webhook for %v returned %d objects, expected %d", from, len(answers), len(b.objects))}
	}
	out := make([]map[string]any, len(answers))
	for i, data := range answers {
		if out[i], err = accept(b.objects[i], data, want); err != nil {
			return nil, &failure{invalidObject, w.refused(from, i, len(answers), err)}
		}
	}
	return out, nil
}

// refused returns the error of one object. A single object has no index in the message, unless its
// type is wrong.
func (w *Webhook) refused(from schema.GroupVersionKind, i, n int, err error) error {
	var meta *metadataError
	var typ *typeError
	what := "converted object"
	switch {
	case errors.As(err, &meta) && n == 1:
		return fmt.Errorf("conversion webhook for %v returned invalid metadata: %w", from, err)
	case errors.As(err, &meta):
		return fmt.Errorf("conversion webhook for %v returned invalid metadata in object at index %d: %w", from, i, err)
	case errors.As(err, &typ) && n == 1:
		what = "object"
	case n == 1:
		return fmt.Errorf("conversion webhook for %v returned invalid object: %w", from, err)
	}
	return fmt.Errorf("conversion webhook for %v returned invalid %s at index %d: %w", from, what, i, err)
}
