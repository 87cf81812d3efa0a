//go:build !race

// The race detector multiplies the processor time of many definitions by ten. Other tests check with it.

package check

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/crd/infer"
)

// An inferred definition accepts its samples. A definition that is inferred from more samples still
// accepts the earlier ones.
func TestInferredAccepts(t *testing.T) {
	const seeds, most = 25, 8
	var definitions []*v1.CustomResourceDefinition
	var all []object.Tree
	for seed := range uint64(seeds) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		var samples []object.Tree
		for i := range most {
			samples = append(samples, g.sample(i))
		}
		for _, n := range []int{1, 2, 3, 5, most} {
			kind := fmt.Sprintf("Sample%dOf%d", seed, n)
			var seen infer.Samples
			for _, s := range samples[:n] {
				one := object.CloneTree(s)
				one["apiVersion"], one["kind"] = "random.example.com/v1", kind
				if err := seen.Add(one); err != nil {
					t.Fatal(err)
				}
				all = append(all, one)
			}
			definitions = append(definitions, seen.Definition(seen.Kinds()[0], infer.Options{MinSamples: 1 + int(seed%3)}).Definition)
		}
	}
	report, err := Verify(t.Context(), definitions, TheseSamples(all), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Summary.Accepted != len(all) || report.Summary.Refused > 0 {
		var out bytes.Buffer
		_ = report.WriteText(&out)
		t.Errorf("%v of %d definitions and %d samples\n%s", report.Summary, len(definitions), len(all), out.String())
	}
}

// A generator generates usual and unusual objects.
type generator struct{ *rand.Rand }

func pick[T any](g generator, list ...T) T { return list[g.IntN(len(list))] }

func (g generator) sample(i int) object.Tree {
	t := object.Tree{"metadata": object.Tree{"name": fmt.Sprintf("sample-%d", i)}, "spec": g.fields(4)}
	switch g.IntN(4) {
	case 0:
		t["status"] = g.fields(2)
	case 1:
		t["status"] = object.Tree{"conditions": g.conditions(), "phase": pick(g, "Up", "Down"), "replicas": int64(1)}
	}
	if g.IntN(8) == 0 {
		t[pick(g, "data", "items", "a.b", "")] = g.value(2)
	}
	return t
}

func (g generator) conditions() []any {
	var all []any
	for _, name := range []string{"Ready", "Synced", "Ready"}[:g.IntN(4)] {
		c := object.Tree{"type": name, "status": pick[any](g, "True", "False", "Unknown", "True", "maybe")}
		switch g.IntN(3) {
		case 0:
			c["reason"] = pick[any](g, "", "Up", nil, int64(1))
			c["lastTransitionTime"] = pick[any](g, "2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00", nil, "never")
		case 1:
			c["observedGeneration"] = pick[any](g, int64(1), 1.5)
			c["severity"] = "Error"
		}
		all = append(all, c)
	}
	return all
}

// fields returns an object or a map.
func (g generator) fields(depth int) object.Tree {
	t := object.Tree{}
	names := []string{"name", "type", "kind", "apiVersion", "metadata", "labels", "limits", "replicas", "selector", "matchLabels", "matchExpressions", "conditions", "items", "timeout", "caBundle", "ownerRefs", "template", "key", "self", "namespace", "int", "a-b", "a.b/c", "ÿ", "", "$ref", "x-y"}
	for range g.IntN(6) {
		t[pick(g, names...)] = g.value(depth - 1)
	}
	switch g.IntN(12) {
	case 0:
		t["apiVersion"], t["kind"], t["metadata"] = pick(g, "v1", "apps/v1", "", "x y"), pick(g, "Pod", "", "pod"), object.Tree{"name": pick[any](g, "a", "A b", "", int64(1)), "labels": g.value(1)}
	case 1:
		t["apiVersion"], t["kind"], t["metadata"] = "v1", "Pod", object.Tree{"name": "a"}
	case 2:
		for i := range g.IntN(300) {
			t[fmt.Sprintf("key%d", i)] = g.value(min(depth-1, 1))
		}
	case 3:
		return object.Tree{"matchLabels": object.Tree{"a": "b"}}
	case 4:
		return object.Tree{"cpu": pick[any](g, "500m", int64(1), "x", 1.5), "memory": pick[any](g, "1Gi", int64(5), nil)}
	}
	return t
}

func (g generator) value(depth int) any {
	if depth > 0 {
		switch g.IntN(4) {
		case 0:
			return g.fields(depth)
		case 1:
			return g.list(depth)
		}
	}
	switch g.IntN(8) {
	case 0:
		return nil
	case 1:
		return g.IntN(2) == 0
	case 2:
		return pick(g, int64(0), 1, -1, 80, 1<<40, -1<<63, 1<<63-1)
	case 3:
		return pick(g, 0.5, 1e300, -1.25, 1e-9)
	}
	return pick(g, "", "a", "b", "Always", "Never", "IfNotPresent", "TCP", "UDP", "small", "large", "2026-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "30s", "1h30m", "5m", "500m", "10Gi", "1e3", "10.0.0.0/8", "10.0.0.1", "::1",
		"6ba7b810-9dad-41d1-80b4-00c04fd430c8", "ZXhhbXBsZWV4YW1wbGU=", "jane@example.com", "https://example.com", "true", "null", "é", "a\nb", strings.Repeat("x", 300), "00:00:5e:00:53:01")
}

func (g generator) list(depth int) any {
	list := []any{}
	same := g.value(depth - 1)
	for i := range g.IntN(4) {
		switch g.IntN(4) {
		case 0:
			list = append(list, same)
		case 1:
			list = append(list, object.Tree{"name": fmt.Sprint("item", i), "value": g.value(depth - 1)})
		case 2:
			list = append(list, object.Tree{"name": pick[any](g, "a", "b", int64(1)), "key": pick(g, "a", "b"), "id": int64(i)})
		default:
			list = append(list, g.value(depth-1))
		}
	}
	return list
}
