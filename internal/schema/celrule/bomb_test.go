package celrule

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A bomb is a valid rule and an object that takes it long to evaluate.
type bomb struct {
	name, properties, rule string
	obj                    map[string]any
}

// part of the budget is enough for tests.
const part = ObjectBudget / 5

func bombs() []bomb {
	numbers := func(n int) map[string]any {
		out := make([]any, n)
		for i := range out {
			out[i] = int64(i)
		}
		return map[string]any{"foo": out}
	}
	objects := make([]any, 50_000)
	for i := range objects {
		objects[i] = map[string]any{"a": "a", "b": map[string]any{"c": int64(1)}}
	}
	const integers = `{foo: {type: array, items: {type: integer}}}`
	return []bomb{
		{"all", integers, `self.foo.all(x, x == x)`, numbers(150_000)},
		{"nested", integers, `self.foo.all(x, self.foo.all(y, y >= 0))`, numbers(450)},
		{"map", integers, `self.foo.map(x, x + 1).size() > 0`, numbers(60_000)},
		{"fields", `{foo: {type: array, items: {type: object, properties: {a: {type: string}, b: {type: object, properties: {c: {type: integer}}}}}}}`,
			`self.foo.all(x, !has(x.a) || x.a != 'b' && x.b.c > 0)`, map[string]any{"foo": objects}},
	}
}

// rules returns enough copies of the rule to exceed the budget of an object.
func (b bomb) rules(tb testing.TB, shared *Shared) *Rules {
	p := schemaOf(tb, b.properties)
	for range 60 {
		withRule(tb, p, "", apiextensionsv1.ValidationRule{Rule: b.rule})
	}
	rules, err := New(p, shared)
	if err != nil {
		tb.Fatal(err)
	}
	rules.CompileAll()
	return rules
}

// An evaluation stops when the request ends.
func TestBombOfCanceledRequest(t *testing.T) {
	b := bombs()[0]
	ctx := &endsLater{Context: context.Background(), after: 20}
	errs := words(b.rules(t, nil).Validate(ctx, b.obj, nil, Options{Budget: part}))
	want := `<nil>: Internal error: the request ended before all validation rules were checked: context canceled`
	if len(errs) != 1 || errs[0] != want {
		t.Errorf("%q, want %q", errs, want)
	}
	if ctx.asked > 25 {
		t.Errorf("it went on after %d more questions", ctx.asked-ctx.after)
	}
}

// endsLater is a context that ends after a number of calls of Err.
type endsLater struct {
	context.Context
	after, asked int
}

func (c *endsLater) Err() error {
	if c.asked++; c.asked > c.after {
		return context.Canceled
	}
	return nil
}

// During many bombs, small objects of others are validated: many for each bomb.
func TestBombsAndOthers(t *testing.T) {
	shared := &Shared{}
	b := bombs()[1]
	bombed := b.rules(t, shared)
	others := withRule(t, schemaOf(t, `{x: {type: integer}}`), "x", apiextensionsv1.ValidationRule{Rule: `self > 0`})
	small, err := New(others, shared)
	if err != nil {
		t.Fatal(err)
	}
	const n = 4
	done := make(chan struct{}, n)
	for range n {
		go func() {
			bombed.Validate(context.Background(), b.obj, nil, Options{Budget: part})
			done <- struct{}{}
		}()
	}
	served := 0
	for ended := 0; ended < n; {
		select {
		case <-done:
			ended++
		default:
			if errs := small.Validate(context.Background(), map[string]any{"x": int64(1)}, nil, Options{}); len(errs) > 0 {
				t.Fatal(errs)
			}
			served++
			runtime.Gosched()
		}
	}
	if served < 100*n {
		t.Errorf("%d others were validated while %d bombs were", served, n)
	}
}

// The number of concurrent long evaluations is limited, and waiting ones end with their request.
func TestLongOnesTakeTurns(t *testing.T) {
	shared := &Shared{}
	b := bombs()[1]
	rules := b.rules(t, shared)
	for range cap(shared.long()) {
		shared.long() <- struct{}{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	got := make(chan []string)
	go func() { got <- words(rules.Validate(ctx, b.obj, nil, Options{Budget: part})) }()
	cancel()
	if errs := <-got; len(errs) != 1 || !strings.Contains(errs[0], "the request ended") {
		t.Errorf("%q", errs)
	}
	for range cap(shared.long()) {
		<-shared.long()
	}
	rules.Validate(context.Background(), b.obj, nil, Options{Budget: part})
	if len(shared.long()) > 0 {
		t.Error("a place was not given back")
	}
}

// BenchmarkBomb spends the budget of an object.
func BenchmarkBomb(b *testing.B) {
	for _, bomb := range bombs() {
		b.Run(bomb.name, func(b *testing.B) {
			rules := bomb.rules(b, nil)
			b.ReportAllocs()
			for b.Loop() {
				if errs := rules.Validate(context.Background(), bomb.obj, nil, Options{}); len(errs) == 0 {
					b.Fatal("nothing is wrong")
				}
			}
		})
	}
}

// BenchmarkKept measures the memory of the compiled program of a rule.
func BenchmarkKept(b *testing.B) {
	for b.Loop() {
		p := schemaOf(b, `{name: {type: string, maxLength: 63}, foo: {type: array, maxItems: 5, items: {type: object, properties: {a: {type: string}, b: {type: integer}}}}}`)
		const n = 500
		for i := range n {
			withRule(b, p, "", apiextensionsv1.ValidationRule{Rule: fmt.Sprintf(`!has(self.foo) || self.foo.all(f, f.b > %d && f.a.startsWith('a')) || self.name.matches('^[a-z]*$')`, i)})
		}
		rules, err := New(p, nil)
		if err != nil {
			b.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		rules.CompileAll()
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/rule")
		runtime.KeepAlive(rules)
	}
}
