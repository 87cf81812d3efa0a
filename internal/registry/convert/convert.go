// Package convert converts objects between versions of their kind by calling a webhook.
//
// It knows ConversionReview, and what a webhook may change: everything except the identity of
// an object and the metadata that belongs to the server. It does not know how a webhook is
// reached, or schemas: versions that differ only in their schemas need no conversion.
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
	// maxObjects and maxRequest bound one call, so that a long list is several.
	maxObjects = 256
	maxRequest = 4 << 20
	// An answer may be replyFactor times as large as its request and replyMore
	// bytes more: objects may grow, one by as much as the largest that a client
	// can write, but they do not become another order of magnitude.
	replyFactor = 3
	replyMore   = 4 << 20
)

// A Poster posts to webhooks. It is what a Webhook needs of a webhook.Client.
type Poster interface {
	Post(ctx context.Context, config *webhook.Config, call webhook.Call) (webhook.Reply, error)
}

// A Webhook converts the objects of one resource. What it is told of the webhook does
// not change, and it is safe for concurrent use.
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

// Convert returns objects, which it may change, in another version, in the order
// they came in. Those that are in it already are returned as they are. When one
// of them cannot be converted, none is.
func (w *Webhook) Convert(ctx context.Context, objects []map[string]any, version string) ([]map[string]any, error) {
	want := schema.GroupVersion{Group: w.Group, Version: version}
	out := make([]map[string]any, len(objects))
	b := batch{}
	for i, o := range objects {
		switch {
		case object.APIVersion(o) == want.String():
			out[i] = o
			continue
		case empty(o):
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

// empty reports whether there is nothing in an object that a webhook could
// convert. Who keeps account of fields starts from such ones.
func empty(o map[string]any) bool {
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

// A batch is what one call converts.
type batch struct {
	objects []map[string]any
	encoded [][]byte
	at      []int // where they are in the result
	size    int
}

func (b *batch) add(i int, o map[string]any, data []byte) {
	b.objects = append(b.objects, o)
	b.encoded = append(b.encoded, data)
	b.at = append(b.at, i)
	b.size += len(data)
}

// flush converts a batch into out, and empties it.
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

// A failure says which part of a conversion failed, for metrics.
type failure struct {
	sort string
	error
}

func (f *failure) Unwrap() error { return f.error }

// The sorts of failures, as Kubernetes names them.
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
	// Kubernetes names what is converted by the first, or only, object.
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
		// It is not wrapped: what the webhook answered is not our answer.
		return nil, &failure{callFailed, fmt.Errorf("conversion webhook for %v failed: %v", from, err)}
	}
	w.kept.saw(reply.Peer)
	answers, err := r.read(reply.Body)
	if err != nil {
		// A webhook that refuses an object works. Others are shown as it showed them.
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

// refused says what is wrong with an object. One that was converted alone is
// not counted, unless it is of the wrong type.
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
