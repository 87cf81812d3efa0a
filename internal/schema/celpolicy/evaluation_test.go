package celpolicy

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

// onlyAda allows ada everything, and counts the calls.
type onlyAda struct{ asked *int }

func (z onlyAda) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	*z.asked++
	if a.User.Name == "ada" {
		return authz.Allow, "it is ada", nil
	}
	return authz.NoOpinion, "it is " + a.User.Name, nil
}

// widget is a write of a widget by ada.
func widget(t *testing.T, attrs *int) *About {
	t.Helper()
	v := &resource.Version{Name: "v1", Served: true, Storage: true}
	d := resource.New(resource.Definition{Group: "example.com", Plural: "widgets", Kind: "Widget", Namespaced: true, Versions: []*resource.Version{v}})
	a := &registry.Admission{
		Operation: registry.Create,
		Target:    registry.Target{Definition: d, Version: v, Namespace: "n", Subresource: "status"},
		Object:    object.Tree{"metadata": object.Tree{"name": "w"}, "spec": object.Tree{"size": int64(3), "names": []any{"a", "b"}}},
		User:      &request.User{Name: "ada", Groups: []string{"g"}, Extra: map[string][]string{"k": {"x"}}},
	}
	return &About{
		Admission: a, Object: a.Object, Kind: schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Widget"},
		Resource:   schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"},
		Namespace:  &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"env": "test"}}},
		Params:     object.Tree{"limit": int64(2)},
		Authorizer: NewAuthorizer(t.Context(), onlyAda{attrs}, a),
	}
}

// The variables of expressions and their values.
func TestEval(t *testing.T) {
	tests := []struct{ text, want string }{
		{`object.spec.size`, `3`},
		{`oldObject == null`, `true`},
		{`object.spec.names.map(n, n + "!").join(",")`, `a!,b!`},
		{`object.spec.size > params.limit`, `true`},
		{`namespaceObject.metadata.labels["env"]`, `test`},
		{`request.operation + " " + request.name + " in " + request.namespace + " " + request.subResource`, `CREATE w in n status`},
		{`request.kind.version + " " + request.requestKind.version + " " + request.resource.version + " " + request.requestResource.version`, `v2 v1 v2 v1`},
		{`request.userInfo.username + request.userInfo.groups[0] + request.userInfo.extra["k"][0]`, `adagx`},
		{`request.options.kind`, `CreateOptions`},
		{`has(request.userInfo.uid)`, `false`},
		{`authorizer.group("").resource("pods").check("get").allowed()`, `true`},
		{`authorizer.requestResource.check("get").reason()`, `it is ada`},
		{`authorizer.serviceAccount("n", "default").path("/healthz").check("get").reason()`, `it is system:serviceaccount:n:default`},
		{`variables.twice`, `6`},
		{`variables.broken`, `expression 'variables.broken' resulted in error: composited variable "broken" fails to evaluate: no such key: missing`},
		{`dyn(variables).self == 1`, `expression 'dyn(variables).self == 1' resulted in error: composited variable "self" fails to evaluate: composited variable "self" depends on itself`},
		{`object.missing == 1`, `expression 'object.missing == 1' resulted in error: no such key: missing`},
		{`object.spec.names[0`, "compilation error: compilation failed: ERROR: <input>:1:20: Syntax error: missing ']' at '<EOF>'\n | object.spec.names[0\n | ...................^"},
	}
	c := WithVariables()
	declared := Declared{Params: true, Authorizer: true}
	for _, v := range [][2]string{{"twice", `object.spec.size * 2`}, {"broken", `object.missing`}, {"self", `dyn(variables).self`}} {
		c.StoredVariable(v[0], Expression{Text: v[1], Declared: declared})
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			x := c.Evaluate(t.Context(), widget(t, new(int)), Budget)
			value, err, fatal := x.Eval(c.Program(Expression{Text: test.text, Declared: declared}))
			got := fmt.Sprint(value)
			if value != nil {
				got = fmt.Sprint(value.Value())
			}
			if err != nil {
				got = err.Error()
			}
			if got != test.want || fatal != nil {
				t.Errorf("%s, %v, want %s", got, fatal, test.want)
			}
		})
	}
}

// A variable is evaluated once, and its cost is charged to the first expression that uses it.
func TestVariablesOnce(t *testing.T) {
	attrs := 0
	about := widget(t, &attrs)
	c := WithVariables()
	declared := Declared{Params: true, Authorizer: true}
	c.StoredVariable("allowed", Expression{Text: `authorizer.requestResource.check("get").allowed()`, Declared: declared})
	x := c.Evaluate(t.Context(), about, Budget)
	p := c.Program(Expression{Text: `variables.allowed && variables.allowed`, Declared: declared})
	var costs []int64
	for range 3 {
		before := x.Left()
		if _, err, fatal := x.Eval(p); err != nil || fatal != nil {
			t.Fatal(err, fatal)
		}
		costs = append(costs, before-x.Left())
	}
	if attrs != 1 || costs[0] <= costs[1] || costs[1] != costs[2] {
		t.Errorf("asked %d times, paid %v", attrs, costs)
	}
}

// An expression that costs more than there is left is the last one.
func TestBudget(t *testing.T) {
	c := Plain()
	cheap := c.Program(Expression{Text: `object.spec.size == 3`})
	x := c.Evaluate(t.Context(), widget(t, new(int)), 8)
	for range 2 {
		if _, err, fatal := x.Eval(cheap); err != nil || fatal != nil {
			t.Fatal(err, fatal)
		}
	}
	if _, _, fatal := x.Eval(cheap); fatal == nil || fatal.Error() != "validation failed due to running out of cost budget, no further validation rules will be run" {
		t.Errorf("%v", fatal)
	}
	dear := c.Program(Expression{Text: `[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, object.spec.size + a + b + c + d + e > 0)))))`})
	x = c.Evaluate(t.Context(), widget(t, new(int)), Budget)
	if _, err, fatal := x.Eval(dear); fatal != nil || err == nil || !strings.HasSuffix(err.Error(), "operation cancelled: actual cost limit exceeded") {
		t.Errorf("%v, %v", err, fatal)
	}
}

func TestConditions(t *testing.T) {
	yes, no, bad := `object.spec.size == 3`, `object.spec.size == 4`, `object.missing == 1`
	dear := `[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, [1,2,3,4,5,6,7,8,9].all(e, object.spec.size + a + b + c + d + e > 0)))))`
	const missing = `expression 'object.missing == 1' resulted in error: no such key: missing`
	tests := []struct {
		name       string
		conditions []string
		ignore     bool
		matches    bool
		broken     int
		err        string
	}{
		{name: "none", matches: true},
		{name: "all are true", conditions: []string{yes, yes}, matches: true},
		{name: "one is false", conditions: []string{yes, no, no}},
		{name: "false counts for more than an error", conditions: []string{bad, no, bad}, broken: 1},
		{name: "an error fails", conditions: []string{yes, bad}, err: missing, broken: 1},
		{name: "so do two of them", conditions: []string{bad, `object.other == 1`}, err: `[` + missing + `, expression 'object.other == 1' resulted in error: no such key: other]`, broken: 2},
		{name: "or is ignored", conditions: []string{yes, bad}, ignore: true, broken: 1},
		{name: "more than the budget", conditions: []string{dear, dear, dear, no}, err: "validation failed due to running out of cost budget, no further validation rules will be run"},
		{name: "the namespace is not known", conditions: []string{`namespaceObject == null`}, matches: true},
		{name: "the resource is that of the request", conditions: []string{`request.resource.version == "v1" && request.kind.version == "v2"`}, matches: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var all []admissionregistrationv1.MatchCondition
			for i, text := range test.conditions {
				all = append(all, admissionregistrationv1.MatchCondition{Name: fmt.Sprint(i), Expression: text})
			}
			failure := admissionregistrationv1.Fail
			if test.ignore {
				failure = admissionregistrationv1.Ignore
			}
			matches, broken, err := Plain().Conditions(all, false, &failure).Match(t.Context(), *widget(t, new(int)))
			said := ""
			if err != nil {
				said = err.Error()
			}
			if matches != test.matches || broken != test.broken || said != test.err {
				t.Errorf("%v, %d, %q, want %v, %d, %q", matches, broken, said, test.matches, test.broken, test.err)
			}
		})
	}
}

// Evaluations about one write share values, but match conditions see others.
func TestCommon(t *testing.T) {
	about, common := widget(t, new(int)), &Common{}
	expression := func(text string) *Program {
		return Plain().Program(Expression{Text: text, Declared: Declared{Params: true, Authorizer: true}, Returns: []*cel.Type{cel.BoolType}})
	}
	failure := admissionregistrationv1.Fail
	conditions := Plain().Conditions([]admissionregistrationv1.MatchCondition{{Name: "a", Expression: `request.resource.version == "v1" && namespaceObject == null`}}, false, &failure)
	rule := expression(`request.resource.version == "v2" && namespaceObject.metadata.name == "n"`)
	var requests []uintptr
	for range 2 {
		next := *about
		next.Common = common
		if matches, _, err := conditions.Match(t.Context(), next); err != nil || !matches {
			t.Errorf("the conditions: %v, %v", matches, err)
		}
		if value, err, fatal := Plain().Evaluate(t.Context(), &next, Budget).Eval(rule); err != nil || fatal != nil || value != types.True {
			t.Errorf("the rule: %v, %v, %v", value, err, fatal)
		}
		requests = append(requests, reflect.ValueOf(common.request).Pointer())
	}
	if requests[0] != requests[1] || common.depth != 0 {
		t.Errorf("the request was computed twice, or an evaluation has not ended (%d)", common.depth)
	}
}
