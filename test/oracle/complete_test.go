package oracle

import (
	"encoding/json"
	"flag"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
)

var cases = flag.Int("n", 500, "number of random schemas to compare; a third of them with -short")

// volume returns the number of random cases: n, or a third of it with -short.
func volume(n int) int {
	if testing.Short() {
		return (n + 2) / 3
	}
	return n
}

var kind = model.Kind{Group: "stable.example.com", Version: "v1", Kind: "CronTab", ListKind: "CronTabList", Plural: "crontabs"}

// Both produce the same object and the same errors for random objects of random schemas.
func TestCompleteRandom(t *testing.T) {
	for seed := range uint64(volume(*cases)) {
		if compareSeed(t, seed); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzComplete(f *testing.F) {
	f.Add(uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, seed uint64) { compareSeed(t, seed) })
}

func compareSeed(t *testing.T, seed uint64) {
	g := newGenerator(seed)
	props := g.root()
	upstream, err := NewUpstream(props)
	if err != nil {
		t.Fatalf("upstream refuses %s: %v", text(props), err)
	}
	ours, err := schema.Parse(props, kind)
	if err != nil {
		t.Fatalf("we refuse %s: %v", text(props), err)
	}
	for range 5 {
		compare(t, upstream, ours, props, g.whole(props, 6))
	}
}

// compare completes an object with both, as a client's and as a stored one.
func compare(t *testing.T, upstream *Upstream, ours *schema.Schema, props *apiextensionsv1.JSONSchemaProps, obj map[string]any) {
	t.Helper()
	want := runtime.DeepCopyJSON(obj)
	wantUnknown, wantErr := upstream.Complete(want, false)
	got, gotUnknown, gotErr := ours.Complete(runtime.DeepCopyJSON(obj))
	if (gotErr == nil) != (wantErr == nil) {
		t.Fatalf("schema %s\nobject %s\nus       %v\nupstream %v", text(props), text(obj), gotErr, wantErr)
	}
	if wantErr == nil {
		same(t, props, obj, "as sent", got, want)
		same(t, props, obj, "unknown fields", gotUnknown, wantUnknown)
	} else if !says(upstream, obj, gotErr) {
		t.Errorf("schema %s\nobject %s\nus       %v\nupstream %v", text(props), text(obj), gotErr, wantErr)
	}

	want = runtime.DeepCopyJSON(obj)
	if _, err := upstream.Complete(want, true); err != nil {
		return // kube-apiserver cannot decode it
	}
	stored := runtime.DeepCopyJSON(obj)
	ours.Prune(stored)
	ours.Default(stored)
	same(t, props, obj, "as stored", stored, want)
}

// says reports whether upstream can report our error. It reports the first one that it finds while it
// iterates over maps, a different one each time.
func says(upstream *Upstream, obj map[string]any, ours error) bool {
	for range 100 {
		_, err := upstream.Complete(runtime.DeepCopyJSON(obj), false)
		if err != nil && strings.HasSuffix(ours.Error(), ": "+err.Error()) {
			return true
		}
	}
	return false
}

func same(t *testing.T, props, obj any, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s: (-upstream +us)\n%s\nschema %s\nobject %s", what, d, text(props), text(obj))
	}
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
