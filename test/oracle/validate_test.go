package oracle

import (
	"context"
	"math"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema"
)

// Random objects of random schemas are rejected with the same errors and messages: in a create, in an
// update, and in an update of the status.
func TestValidateRandom(t *testing.T) {
	var n tally
	for seed := range uint64(volume(*cases)) {
		if n.seed(t, seed); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	n.log(t)
}

func FuzzValidate(f *testing.F) {
	f.Add(uint64(math.MaxUint64))
	f.Fuzz(func(t *testing.T, seed uint64) { new(tally).seed(t, seed) })
}

// A tally has the numbers of comparisons.
type tally struct{ valid, invalid, forgiven int }

func (n *tally) log(t *testing.T) {
	t.Logf("%d valid, %d invalid, %d updates forgiven for what they did not change", n.valid, n.invalid, n.forgiven)
}

func (n *tally) seed(t *testing.T, seed uint64) {
	g := newGenerator(seed)
	props := g.root()
	g.restrict(props)
	v := newValidators(t, props)
	for range 4 {
		old := g.whole(props, 8)
		g.scatter(props, old)
		obj := runtime.DeepCopyJSON(old)
		for range 1 + g.IntN(3) {
			g.scatter(props, obj)
		}
		n.compare(t, v, old, obj)
	}
}

type validators struct {
	props    *apiextensionsv1.JSONSchemaProps
	upstream *Validator
	ours     *schema.Schema
}

func newValidators(t *testing.T, props *apiextensionsv1.JSONSchemaProps) *validators {
	t.Helper()
	upstream, err := NewValidator(props)
	if err != nil {
		t.Fatalf("upstream refuses %s: %v", text(props), err)
	}
	ours, err := schema.Parse(props, kind)
	if err != nil {
		t.Fatalf("we refuse %s: %v", text(props), err)
	}
	return &validators{props, upstream, ours}
}

// compare validates two objects and an update from one to the other.
func (n *tally) compare(t *testing.T, v *validators, old, obj map[string]any) {
	t.Helper()
	ctx := context.Background()
	created := v.upstream.Create(ctx, obj)
	v.same(t, "create", nil, obj, v.ours.Validate(ctx, obj, nil), created)
	updated := v.upstream.Update(ctx, obj, old)
	v.same(t, "update", old, obj, v.ours.Validate(ctx, obj, old), updated)
	same := runtime.DeepCopyJSON(old)
	v.same(t, "update without change", old, same, v.ours.Validate(ctx, same, old), v.upstream.Update(ctx, same, old))

	status := runtime.DeepCopyJSON(old)
	delete(status, "status")
	if s, ok := obj["status"]; ok {
		status["status"] = s
	}
	v.same(t, "status", old, status, v.ours.ValidateStatus(ctx, status, old), v.upstream.UpdateStatus(ctx, status, old))

	switch {
	case len(created) == 0:
		n.valid++
	default:
		n.invalid++
		if len(updated) < len(created) {
			n.forgiven++
		}
	}
}

func (v *validators) same(t *testing.T, what string, old, obj map[string]any, got, want field.ErrorList) {
	t.Helper()
	if a, b := complaints(got), complaints(want); !slices.Equal(a, b) {
		same(t, v.props, map[string]any{"old": old, "new": obj}, what, a, b)
	}
}

// complaints returns errors sorted, as upstream's order is random.
func complaints(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, string(err.Type)+" "+err.Error())
	}
	slices.Sort(out)
	return out
}
