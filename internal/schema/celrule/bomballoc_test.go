//go:build !race

// The race detector allocates too, and multiplies the processor time of the rules by ten.

package celrule

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// Each expression exhausts the budget and fails with its error. The budget limits memory too: a step
// of cost one creates one or two values.
func TestBombs(t *testing.T) {
	for _, b := range bombs() {
		t.Run(b.name, func(t *testing.T) {
			rules := b.rules(t, nil)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			errs := words(rules.Validate(context.Background(), b.obj, nil, Options{Budget: part}))
			runtime.ReadMemStats(&after)
			if len(errs) != 1 || !strings.Contains(errs[0], "no further validation rules will be run") {
				t.Errorf("%q", errs)
			}
			if made := after.TotalAlloc - before.TotalAlloc; made > 32*part {
				t.Errorf("%d bytes were allocated for each step", made/part)
			}
		})
	}
}

// The stack after a loop does not grow with the number of its elements.
func TestMeterStack(t *testing.T) {
	loops := bombs()
	for _, rule := range []string{`self.foo.all(x, [x, x + 1].size() == 2)`, `self.foo.all(x, (x >= 0 && x < 1000) == true)`, `self.foo.all(x, [x].all(y, y == x))`} {
		loops = append(loops, bomb{rule, bombs()[2].properties, rule, bombs()[2].obj})
	}
	for _, b := range loops {
		root, err := builder{}.root(schemaOf(t, b.properties))
		if err != nil {
			t.Fatal(err)
		}
		c := &compiler{node: root.self(), name: "selfType1"}
		env, err := c.env(true, false)
		if err != nil {
			t.Fatal(err)
		}
		ast, issues := env.Compile(b.rule)
		if issues != nil {
			t.Fatal(issues)
		}
		p, err := newProgram(true, gate.Current, ast)
		if err != nil {
			t.Fatal(err)
		}
		scope := scopeOf(root.self(), b.obj)
		p.Eval(scope)
		if n := scope.Meter.Depth(); n > 1000 {
			t.Errorf("%s: the stack had %d values", b.name, n)
		}
	}
}
