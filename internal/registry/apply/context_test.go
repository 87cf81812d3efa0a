package apply

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/object"
)

// A conversion webhook that hangs delays an update and an apply until the request ends, and no longer.
// The fields of the other manager stay unchanged.
func TestConversionsEndWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := (&random{rand.New(rand.NewPCG(1, 1))}).kind(t)
		k.Definition.Convert = func(ctx context.Context, _ []map[string]any, _ string) ([]map[string]any, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(30 * time.Second):
				return nil, context.DeadlineExceeded
			}
		}
		old := object.Tree{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": object.Tree{
			"name": "x", "uid": "u", "managedFields": []any{object.Tree{
				"manager": "other", "operation": "Update", "apiVersion": "example.com/v2", "fieldsType": "FieldsV1",
				"fieldsV1": object.Tree{"f:metadata": object.Tree{"f:labels": object.Tree{"f:a": object.Tree{}}}}, "time": "2026-01-01T00:00:00Z",
			}},
			"labels": object.Tree{"a": "b"},
		}}
		f := FieldsOf(k.Definition, k.Definition.Versions[0], "")
		if k.Definition.Versions[0].Name != "v1" {
			f = FieldsOf(k.Definition, k.Definition.Versions[1], "")
		}
		limited := func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), 5*time.Second) }

		ctx, cancel := limited()
		defer cancel()
		start := time.Now()
		now := object.CloneTree(old)
		object.Metadata(now)["labels"] = object.Tree{"a": "c"}
		updated := f.Update(ctx, old, now, "me")
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the update waited %v for the webhook", took)
		}
		if got, want := object.Metadata(updated)["managedFields"], object.Metadata(old)["managedFields"]; !object.Equal(got, want) {
			t.Errorf("managedFields are %v", got)
		}

		ctx, cancel = limited()
		defer cancel()
		start = time.Now()
		wanted := object.Tree{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": object.Tree{"name": "x", "labels": object.Tree{"a": "d"}}}
		if _, err := f.Apply(ctx, old, wanted, "me", true); err == nil {
			t.Error("the apply succeeded without the conversion")
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("the apply waited %v for the webhook", took)
		}
	})
}
