package policy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Parameters are decoded once, until they or their kind change, or some minutes pass. Results of a
// conversion webhook are not cached here.
func TestParamsAreDecodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		decoded := 0
		p := &params{Dependencies: Dependencies{Decode: func(context.Context, *resource.Definition, *resource.Version, *watchcache.Object) (object.Tree, error) {
			decoded++
			return object.Tree{"number": decoded}, nil
		}}}
		kind, same := &paramKind{&resource.Definition{}, &resource.Version{}}, &watchcache.Object{Key: "a"}
		changed := &paramKind{kind.definition, &resource.Version{}}
		converted := &paramKind{&resource.Definition{
			Convert: func(context.Context, []map[string]any, string) ([]map[string]any, error) { return nil, nil },
		}, &resource.Version{}}
		for i, step := range []struct {
			kind   *paramKind
			object *watchcache.Object
			later  time.Duration
			want   int
		}{
			{kind: kind, object: same, want: 1},
			{kind: kind, object: same, want: 1},
			{kind: kind, object: &watchcache.Object{Key: "b"}, want: 2},
			{kind: kind, object: same, want: 1},
			{kind: changed, object: same, want: 3},
			{kind: changed, object: &watchcache.Object{Key: "a"}, want: 4},
			{kind: kind, object: same, want: 5},
			{kind: kind, object: same, later: idleAfter + time.Second, want: 6},
			{kind: converted, object: same, want: 7},
			{kind: converted, object: same, want: 8},
		} {
			time.Sleep(step.later)
			synctest.Wait()
			got, err := p.decode(t.Context(), step.kind, step.object)
			if err != nil || got["number"] != step.want {
				t.Errorf("step %d: decoded as %v (%v), want %d", i, got["number"], err, step.want)
			}
		}
	})
}
