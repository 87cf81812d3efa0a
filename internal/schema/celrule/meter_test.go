package celrule

import (
	"context"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/objecttest"
	"github.com/anykind/anykind/internal/schema/celprogram"
)

// The meter has the same counts as cel-go's tracker, step by step, also after failed steps and after
// errors of the tracker.
func TestMeterAgrees(t *testing.T) {
	p := schemaOf(t, `{
		num: {type: integer}, m: {type: integer}, s: {type: string}, d: {type: number}, b: {type: boolean},
		list: {type: array, items: {type: integer}}, texts: {type: array, items: {type: string}},
		set: {type: array, x-kubernetes-list-type: set, items: {type: string}},
		map: {type: object, additionalProperties: {type: integer}},
		any: {x-kubernetes-int-or-string: true},
		of: {type: array, items: {type: object, properties: {k: {type: string}, v: {type: integer}, deep: {type: object, properties: {x: {type: array, items: {type: integer}}}}}}},
		o: {type: object, properties: {a: {type: object, properties: {b: {type: string}}}, z: {type: object, properties: {b: {type: string}}}}},
		when: {type: string, format: date-time}, for: {type: string, format: duration}}`)
	root, err := builder{}.root(p)
	if err != nil {
		t.Fatal(err)
	}
	node := root.self()
	obj := objecttest.Tree(t, `{num: 3, m: 0, s: some text that is not short, d: 1.5, b: true, list: [3, 1, 2, 1], texts: [b, a, ccc], set: [x, y],
		map: {a: 1, b: 2}, any: 50%, when: "2020-01-01T00:00:00Z", for: 1h,
		of: [{k: a, v: 1, deep: {x: [1, 2]}}, {k: b}, {k: c, v: 3, deep: {x: []}}], o: {a: {b: inner}}}`)
	for _, rule := range meterRules {
		meterAgrees(t, node, obj, rule)
		// In a loop, and after an error that does not end the evaluation.
		meterAgrees(t, node, obj, `self.list.all(i, (`+rule+`) || i > 0)`)
		meterAgrees(t, node, obj, `self.of.exists(i, i.v > 1 && (`+rule+`))`)
		meterAgrees(t, node, obj, `self.list.map(i, (`+rule+`) ? [i] : []).size() > 0 || (`+rule+`)`)
	}
}

var meterRules = []string{
	`true`, `self.num > 1`, `self.num + self.m * 2 - 1 >= 0`, `self.num / self.m > 0`, `self.num % 2 == 1 || self.num / self.m > 0`, `-self.num < 0`, `!self.b`,
	`self.num > 1.5`, `self.d == 1.5`, `has(self.num)`, `has(self.o.a)`, `has(self.o.z)`, `has(self.o.z) && self.o.z.b == ''`, `self.o.z.b == ''`, `has(self.o.a.b) && self.o.a.b.size() > 0`,
	`self.s.contains('that')`, `self.s.startsWith('some')`, `self.s.endsWith(self.s)`, `self.s.matches('^[a-z ]*$')`, `self.s.matches(self.s)`, `self.s.find('[a-z]+') == 'some'`,
	`self.s.findAll('[a-z]+').size() > 2`, `self.s.findAll('[a-z]+', 2).size() == 2`, `self.s.split(' ').join('-') != ''`, `self.s.replace('t', 'TT').lowerAscii() != self.s.upperAscii()`,
	`self.s.substring(2, 4).trim().indexOf('m') == 0`, `self.s + self.s == self.s`, `self.s < self.o.a.b`, `bytes(self.s).size() > 1`, `string(self.num) == '3'`, `int('12') == 12`, `int(self.s) == 1`, `int(self.s) == 1 || true`,
	`self.list.all(x, x > 0)`, `self.list.exists(x, x == 2)`, `self.list.exists_one(x, x == 2)`, `self.list.map(x, x * 2).size() == 4`, `self.list.map(x, x > 1, x * 2) == [6, 4]`, `self.list.filter(x, x > 1).all(y, y in self.list)`,
	`self.list.all(x, self.list.all(y, x + y > 0 && self.texts.exists(t, t != 'q')))`, `self.list[0] == 3`, `self.list[self.m] == 3`, `self.list[self.num - 1] == 2`, `self.list[17] == 1 || self.num == 3`, `self.texts[self.list[1]] == 'a'`,
	`self.list.isSorted()`, `self.list.sum() == 7`, `self.list.max() == 3 && self.list.min() == 1`, `self.list.indexOf(2) == 2`, `self.list.sort() == [1, 1, 2, 3]`, `self.list.distinct().size() == 3`, `self.texts.sort().reverse().slice(0, 2).size() == 2`,
	`self.of.sortBy(e, e.k).size() == 3`, `self.list.sortBy(e, -e)[0] == 3`, `[[1], [2, 3]].flatten().size() == 3`, `[[[1]], [[2, 3]]].flatten(2).size() == 3`, `lists.range(5).all(i, i < 5)`,
	`sets.contains(self.list, [1, 2])`, `sets.intersects(self.texts, ['q'])`, `sets.equivalent(self.list, [1, 2, 3])`, `self.set == ['y', 'x']`, `self.set + ['z'] == ['x']`, `self.texts + self.texts == self.texts`,
	`'a' in self.map`, `self.map['a'] == 1`, `self.map.all(k, self.map[k] > 0)`, `self.map.all(k, v, v > 0 && k != '')`, `self.list.transformList(i, v, v * i).size() == 4`, `self.map.transformMap(k, v, v + 1).size() == 2`, `self.list.exists(i, v, i == v)`, `self.map.q == 1 || self.map['q'] == 2`,
	`{'a': self.num, self.s: 2}.size() == 2`, `[self.num, self.m, 3] == [3, 0, 3]`, `[1, self.num / self.m].size() == 2 || self.num == 3`, `{'a': 1}.a == 1`, `self.num in [1, 2, 3]`, `self.s in []`, `self.s in [self.s, 'a']`,
	`(self.b ? self.num : self.m) == 3`, `(self.num > 5 ? self.of[0] : self.of[1]).k == 'b'`, `(self.b ? self.of[0] : self.of[1]).deep.x.size() == 2`, `has((self.b ? self.of[0] : self.of[1]).deep)`, `has((self.b ? self.of[1] : self.of[0]).deep.x)`, `(self.b ? self.o : self.o).a.b == 'inner'`, `self.b ? self.num / self.m > 0 : true`,
	`(self.b ? self.list : [1])[0] == 3`, `self.list[self.b ? 0 : 1] == 3`, `self.list.filter(x, x > 1)[0] == 3`, `self.of[0].deep.x[1] == 2`, `self.of.all(e, has(e.deep) && e.deep.x.all(x, x > 0))`, `self.of.all(e, !has(e.v) || e.v > 0)`, `self.of.filter(e, e.v > 2).size() == 1`,
	`self.?num.hasValue()`, `self.?o.z.b.orValue('none') == 'none'`, `self.?o.?a.?b.or(optional.of('x')).value() == 'inner'`, `self.of[?9].or(self.of[?0]).hasValue()`, `self.of[?1].or(self.of[?0]).hasValue()`, `self.map[?'q'].orValue(1) == 1`, `self.?num.optMap(x, x + 1).orValue(0) == 4`, `self.?o.optFlatMap(x, x.?z).hasValue()`, `[?self.?num, ?optional.none()].size() == 1`, `optional.ofNonZeroValue(self.m).hasValue()`, `self.of[?7].?deep.hasValue()`,
	`self.when > timestamp('2019-01-01T00:00:00Z')`, `self.__for__ == duration('1h')`, `self.when + self.__for__ > self.when`, `self.when.getFullYear() == 2020`, `type(self.any) == string`, `type(self.any) == string ? self.any == '50%' : self.any == 3`, `type(self.num) == int`, `dyn(self.num) == 'x'`, `self.any.contains('%')`, `self.any + 1 > 2 || true`,
	`quantity('1Gi').isGreaterThan(quantity('1M'))`, `isQuantity(self.s) || quantity(self.s).isInteger()`, `quantity('1') == quantity('1000m')`, `url('https://example.com/a?b=c').getHost() == 'example.com'`, `isURL(self.s)`, `ip('10.0.0.1').family() == 4`, `cidr('10.0.0.0/8').containsIP('10.1.1.1')`, `cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')`, `isIP(self.s)`, `ip.isCanonical('10.0.0.1')`, `semver('1.2.3').isLessThan(semver('2.0.0'))`, `format.dns1123Label().validate(self.s).hasValue()`, `format.named('uuid').hasValue()`, `"%d of %s".format([self.num, self.texts]) != ''`, `strings.quote(self.s) != ''`, `self.s.charAt(2) == 'm'`,
	// An argument that was evaluated in the round before, but not in this one.
	`[0, 9].exists(i, self.s.substring(self.list[i], self.num).size() > 9)`, `[0, 9].exists(i, self.s.replace('q', self.texts[i], self.num) == '')`,
	`[0, 9].exists(i, self.s.substring(self.list[i], (self.b ? self.of[0] : self.of[0]).v).size() > 9)`, `[0, 9].exists(i, self.s.substring(self.list[i], self.map['a'] + 2).size() > 9)`,
	`[0, 9].exists(i, self.s.substring(self.list[i], self.b && self.num == 3 ? 3 : 4).size() > 9)`, `[0, 9].exists(i, self.s.substring(self.list[i], [self.num].size() + 2).size() > 9)`,
}

// A cost that is the budget is within it, one more is not.
func TestMeterLimit(t *testing.T) {
	root, err := builder{}.root(schemaOf(t, `{s: {type: string}, t: {type: string}}`))
	if err != nil {
		t.Fatal(err)
	}
	for more := range 6 { // of which some are within the budget
		obj := map[string]any{"s": strings.Repeat("a", 9990), "t": strings.Repeat("a", 19890+10*more)}
		meterAgrees(t, root.self(), obj, `self.s.contains(self.s) && self.t.startsWith(self.t)`)
	}
}

func scopeOf(n *node, obj map[string]any) *celprogram.Scope {
	return &celprogram.Scope{Meter: &celprogram.Meter{Context: context.Background()}, Variables: &variables{self: n.value(obj)}}
}

func meterAgrees(t *testing.T, node *node, obj map[string]any, rule string) {
	t.Helper()
	c := &compiler{node: node, name: "selfType1"}
	env, err := c.env(true, false)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(rule)
	if issues != nil {
		t.Errorf("%s: %v", rule, issues)
		return
	}
	reference, err := env.Program(ast, cel.CostLimit(celprogram.CallBudget), cel.CostTracking(&library.CostEstimator{}))
	if err != nil {
		t.Fatalf("%s: %v", rule, err)
	}
	ours, err := newProgram(true, gate.Current, ast)
	if err != nil {
		t.Fatalf("%s: %v", rule, err)
	}
	scope := scopeOf(node, obj)
	want, details, wantErr := reference.Eval(scope)
	got, cost, gotErr := ours.Eval(scope)
	if cost != *details.ActualCost() {
		t.Errorf("%s: costs %d, want %d", rule, cost, *details.ActualCost())
	}
	if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() || wantErr == nil && want != got {
		t.Errorf("%s: %v, %v, want %v, %v", rule, got, gotErr, want, wantErr)
	}
}
