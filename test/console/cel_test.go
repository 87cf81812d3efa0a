package console

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
)

// atoms are expressions without operators, about object.
var atoms = []string{"1", "2", "0", "-3", "1.5", "0.5", "'a'", `"b"`, "'aab'", "true", "false", "null", "[]", "[1, 2]", "['a', 'b']", "{'a': 1}", "object.n", "object.s", "object.f", "object.t", "object.l", "object.m", "object.m.a",
	"object.absent", "object.l[0]", "object.m['a']", "object.l[9]", "object.z", "object.os", "object.os[0].k", "has(object.n)", "has(object.absent)", "has(object.m.b)", "has(object.l.b)", "has(object.s.b)", "has(object.absent.b)", "has(object.z.b)", "size(object.l)", "object.s.size()", "int('12')", "double(1)", "string(2)", "int(1.9)", "object.big", "9007199254740993", "(object.big - 1)"}

var tests = map[string]any{"big": int64(9007199254740993), "n": 3, "s": "aab", "f": 2.5, "t": true, "l": []any{1, 2, 3}, "m": map[string]any{"a": 1, "c": "x"}, "z": nil, "os": []any{map[string]any{"k": "a", "v": 1}, map[string]any{"k": "b"}}}

func randomExpression(r *rand.Rand, depth int) string {
	if depth == 0 {
		return atoms[r.IntN(len(atoms))]
	}
	sub := func() string { return randomExpression(r, r.IntN(depth)) }
	switch r.IntN(9) {
	case 0:
		return fmt.Sprintf("(%s ? %s : %s)", sub(), sub(), sub())
	case 1:
		return "!(" + sub() + ")"
	case 2:
		return fmt.Sprintf("(%s).%s(%s)", sub(), []string{"contains", "startsWith", "endsWith", "matches"}[r.IntN(4)], []string{"'a'", "'b'", "object.s", "'^a+b'", "1"}[r.IntN(5)])
	case 3:
		return fmt.Sprintf("(%s).%s(x, %s)", sub(), []string{"all", "exists", "exists_one", "filter", "map"}[r.IntN(5)], []string{"x == 1", "x > 1", "x == 'a'", "x.k == 'a'", "has(x.v)", "x", "x.v == 1 || x.k == 'b'"}[r.IntN(7)])
	default:
		ops := []string{"==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%", "&&", "||", "&&", "||", "=="}
		return fmt.Sprintf("(%s %s %s)", sub(), ops[r.IntN(len(ops))], sub())
	}
}

// Expressions have the values that cel-go gives them, and errors where it has errors.
func TestFiltersInCEL(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		t.Fatal(err)
	}
	n := 60_000
	if testing.Short() {
		n = 3000
	}
	r := rand.New(rand.NewPCG(11, 12))
	var sources, want []string
	for len(sources) < n {
		source := randomExpression(r, 4)
		ast, issues := env.Parse(source)
		if issues.Err() != nil {
			t.Fatal(issues.Err())
		}
		program, err := env.Program(ast)
		if err != nil {
			t.Fatal(source, err)
		}
		value, _, err := program.Eval(map[string]any{"object": tests})
		sources, want = append(sources, source), append(want, shown(value, err))
	}
	data, err := json.Marshal(sources)
	if err != nil {
		t.Fatal(err)
	}
	object, err := json.Marshal(tests)
	if err != nil {
		t.Fatal(err)
	}
	got := Eval[[]string](p, fmt.Sprintf(`Promise.all([import("/console/cel.js"), import("/console/api.js")]).then(([c, a]) => %s.map(s => { try { const v = c.evaluate(s, {object: a.decode(%s)}); return typeof v === "object" && v !== null ? "value" : a.encode(v) } catch (e) { return e instanceof SyntaxError ? "syntax: " + e.message : "error" } }))`, data, strconv.Quote(string(object))))
	counts := map[string]int{}
	for i := range sources {
		counts[want[i]]++
		if got[i] != want[i] {
			t.Errorf("%s is %s, want %s", sources[i], got[i], want[i])
		}
	}
	t.Logf("%d true, %d false, %d errors of %d", counts["true"], counts["false"], counts["error"], n)
	for _, wrong := range []string{"object.", "1 +", "(1", "a b", "object.n ==", "'a", "f(1)", "object.s.f()", "has(1)", "@"} {
		if got := Eval[string](p, fmt.Sprintf(`import("/console/cel.js").then(c => { try { c.compile(%q); return "compiles" } catch (e) { return e.name } })`, wrong)); got != "SyntaxError" {
			t.Errorf("%s: %s", wrong, got)
		}
	}
}

// shown writes a result as the page does.
func shown(value ref.Val, err error) string {
	if err != nil {
		return "error"
	}
	switch v := value.Value().(type) {
	case bool, int64, float64, string:
		data, _ := json.Marshal(v)
		return strings.TrimSuffix(string(data), ".0")
	}
	if fmt.Sprint(value.Type()) == "null_type" {
		return "null"
	}
	return "value"
}
