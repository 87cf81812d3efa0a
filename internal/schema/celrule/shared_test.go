package celrule

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/objecttest"
)

const podLike = `{spec: {type: object, properties: {
	name: {type: string, maxLength: 10, x-kubernetes-validations: [{rule: "self != ''"}]},
	more: {type: array, maxItems: 5, items: {type: object, properties: {count: {type: integer}}, x-kubernetes-validations: [{rule: "self.count > 0"}]}}}},
	status: {type: object, properties: {ready: {type: boolean}}}}`

// Equal places share one node, and so one program. Unused nodes are collected.
func TestSharing(t *testing.T) {
	shared := &Shared{}
	one, err := New(schemaOf(t, podLike), shared)
	if err != nil {
		t.Fatal(err)
	}
	// The same with one more rule at the root: below, all is the same.
	other := withRule(t, schemaOf(t, podLike), "", apiextensionsv1.ValidationRule{Rule: `has(self.spec)`})
	two, err := New(other, shared)
	if err != nil {
		t.Fatal(err)
	}
	below := func(r *Rules) *node { return r.current.Load().root.properties["spec"] }
	if below(one) != below(two) {
		t.Error("the same spec has two nodes")
	}
	if one.current.Load().root == two.current.Load().root {
		t.Error("two roots have one node")
	}
	one.CompileAll()
	if shared.Len() != 6 { // two roots, spec, name, the list and its items
		t.Errorf("%d nodes, want 6", shared.Len())
	}
	one.Drop()
	two.Drop()
	for range 100 {
		if runtime.GC(); shared.Len() == 0 {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d nodes are kept, want none", shared.Len())
}

// Rules are compiled when they are needed, and again after a Drop, by many at once.
func TestLaziness(t *testing.T) {
	p, reads := schemaOf(t, podLike), 0
	rules := Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) { reads++; return p, nil }, nil)
	if rules.Compiled() || reads > 0 {
		t.Error("compiled before the first use")
	}
	obj := objecttest.Tree(t, `{spec: {name: a, more: [{count: 1}]}}`)
	for round := 1; round <= 2; round++ {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				if errs := rules.Validate(context.Background(), obj, nil, Options{}); len(errs) > 0 {
					t.Error(errs)
				}
			})
		}
		group.Wait()
		if reads != round || !rules.Compiled() {
			t.Errorf("read %d times, want %d", reads, round)
		}
		rules.Drop()
	}
}

// Rules not used since the last call are dropped.
func TestIdle(t *testing.T) {
	rules, err := New(schemaOf(t, podLike), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false} {
		if rules.DropIdle(); rules.Compiled() != want {
			t.Errorf("call %d: compiled is %t, want %t", i+1, !want, want)
		}
	}
	rules.CompileAll()
	if rules.DropIdle(); !rules.Compiled() {
		t.Error("dropped although it was used")
	}
}

// A request that has ended does not go on.
func TestCancel(t *testing.T) {
	rules, err := New(schemaOf(t, podLike), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	errs := rules.Validate(ctx, objecttest.Tree(t, `{spec: {name: a}}`), nil, Options{})
	if len(errs) != 1 || errs[0].Field != "spec.name" {
		t.Error(errs)
	}
}

// Defaults keep the rules of the schema that they are of.
func TestDefaults(t *testing.T) {
	for _, tt := range []struct {
		properties, want string
	}{
		{`{a: {type: integer, default: 1, x-kubernetes-validations: [{rule: "self > 0"}]}}`, ""},
		{`{a: {type: integer, default: 0, x-kubernetes-validations: [{rule: "self > 0"}]}}`, `schema.properties[a].default: Invalid value: 0: failed rule: self > 0`},
		{`{a: {type: integer, default: 1, x-kubernetes-validations: [{rule: "oldSelf.hasValue()", optionalOldSelf: true}]}}`, `schema.properties[a].default: Invalid value: 1: failed rule: oldSelf.hasValue()`},
		{`{a: {type: object, default: {b: x}, properties: {b: {type: string, x-kubernetes-validations: [{rule: "self == 'y'"}]}}}}`, `schema.properties[a].default.b: Invalid value: "x": failed rule: self == 'y'`},
		{`{a: {type: array, items: {type: integer}, default: [` + strings.Repeat("1,", 2000) + `1], x-kubernetes-validations: [{rule: "self.all(x, x > 0)"}]}}`, ""},
	} {
		got := words(CheckDefaults(context.Background(), schemaOf(t, tt.properties), field.NewPath("schema"), nil))
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || got[0] != tt.want) {
			t.Errorf("%s: %q, want %q", tt.properties, got, tt.want)
		}
	}
}
