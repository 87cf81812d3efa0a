package kind

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// Answering is a Creater from a function of Go values. It returns the response to obj, which may be
// obj itself.
type Answering[T any] func(ctx context.Context, c *resource.Change, obj *T) (*T, error)

// Create implements resource.Creater.
func (a Answering[T]) Create(ctx context.Context, c *resource.Change) (map[string]any, error) {
	answer, err := a(ctx, c, ValueOf[T](c.Object))
	if err != nil {
		return nil, err
	}
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(answer)
	if err != nil {
		return nil, status.Internal(err)
	}
	out["apiVersion"], out["kind"] = c.Object["apiVersion"], c.Object["kind"]
	return out, nil
}
