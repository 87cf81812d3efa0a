package oracle

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	upstreamcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/check"
)

// upstreamRules are the rules of a schema as kube-apiserver compiles them.
type upstreamRules struct {
	structural *structuralschema.Structural
	validator  *upstreamcel.Validator
}

func newUpstreamRules(t testing.TB, props *apiextensionsv1.JSONSchemaProps) upstreamRules {
	t.Helper()
	u, err := NewUpstream(props)
	if err != nil {
		t.Fatal(err)
	}
	return upstreamRules{u.structural, upstreamcel.NewValidator(u.structural, true, celconfig.PerCallLimit)}
}

func (u upstreamRules) validate(obj, old map[string]any) field.ErrorList {
	if old == nil {
		errs, _ := u.validator.Validate(context.Background(), nil, u.structural, obj, nil, celconfig.RuntimeCELCostBudget)
		return errs
	}
	correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: u.structural})
	errs, _ := u.validator.Validate(context.Background(), nil, u.structural, obj, old, celconfig.RuntimeCELCostBudget, upstreamcel.WithRatcheting(correlated))
	return errs
}

// Published rules have the estimated costs of upstream.
func TestCorpusRuleCosts(t *testing.T) {
	rules := 0
	for _, crd := range definitions(t) {
		for _, v := range crd.Spec.Versions {
			props := v.Schema.OpenAPIV3Schema
			at := field.NewPath(schemaPath)
			report := celrule.Check(props, at, celrule.CheckOptions{})
			for _, err := range report.Errors {
				t.Errorf("%s/%s: %v", crd.Name, v.Name, err)
			}
			ours := map[string]string{}
			for _, e := range report.Estimates {
				ours[e.Path.String()] = strconv.FormatUint(e.Each, 10)
			}
			u, err := NewUpstream(props)
			if err != nil {
				t.Fatal(err)
			}
			theirs := map[string]string{}
			upstreamCosts(t, at, u.structural, model.SchemaDeclType(u.structural, true), theirs)
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Fatalf("%s/%s: costs (-upstream +ours):\n%s", crd.Name, v.Name, diff)
			}
			rules += len(ours)
		}
	}
	t.Logf("%d expressions", rules)
}

// upstreamCosts collects the costs of all rules of a schema by path.
func upstreamCosts(t *testing.T, at *field.Path, s *structuralschema.Structural, typ *apiservercel.DeclType, costs map[string]string) {
	t.Helper()
	results, err := upstreamcel.Compile(s, typ, celconfig.PerCallLimit, environment.MustBaseEnvSet(utilversion.MajorMinor(1, 36)), upstreamcel.NewExpressionsEnvLoader())
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		at := at.Child("x-kubernetes-validations").Index(i)
		costs[at.Child("rule").String()] = strconv.FormatUint(r.MaxCost, 10)
		if r.MessageExpression != nil {
			costs[at.Child("messageExpression").String()] = strconv.FormatUint(r.MessageExpressionMaxCost, 10)
		}
	}
	if s.Items != nil && typ.ElemType != nil {
		upstreamCosts(t, at.Child("items"), s.Items, typ.ElemType, costs)
	}
	if a := s.AdditionalProperties; a != nil && a.Structural != nil && typ.ElemType != nil {
		upstreamCosts(t, at.Child("additionalProperties"), a.Structural, typ.ElemType, costs)
	}
	for name, p := range s.Properties {
		if escaped, ok := apiservercel.Escape(name); ok {
			if f, ok := typ.Fields[escaped]; ok {
				upstreamCosts(t, at.Child("properties").Key(name), &p, f.Type, costs)
			}
		}
	}
}

// The objects of the Gateway API, with changes, get the same errors with the same messages.
func TestCorpusRuleErrors(t *testing.T) {
	compared, failed := 0, 0
	corpusObjects(t, func(path string, props *apiextensionsv1.JSONSchemaProps, obj map[string]any) {
		upstream := newUpstreamRules(t, props)
		if upstream.validator == nil {
			return
		}
		ours, err := celrule.New(props, nil)
		if err != nil {
			t.Fatal(err)
		}
		u, err := NewUpstream(props)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Complete(obj, false); err != nil {
			return
		}
		g := newGenerator(uint64(compared))
		for round := range 12 {
			now := runtime.DeepCopyJSON(obj)
			var old map[string]any
			if round > 0 {
				g.disturb(now)
			}
			if round > 5 {
				old = runtime.DeepCopyJSON(obj)
				if round > 8 {
					g.disturb(old)
				}
			}
			want := wordsOf(upstream.validate(now, old))
			got := wordsOf(ours.Validate(context.Background(), now, old, celrule.Options{Update: true}))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%s: %s\nreplaces %s\n(-upstream +ours):\n%s", path, text(now), text(old), diff)
			}
			compared++
			if len(want) > 0 {
				failed++
			}
		}
	})
	t.Logf("%d comparisons, %d with errors", compared, failed)
}

// disturb changes a random value: it removes or duplicates it, or replaces it by another of its type.
func (g generator) disturb(v any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return
		}
		names := sortedKeys(v)
		name := pick(g, names...)
		switch sub := v[name].(type) {
		case map[string]any, []any:
			if g.one(6) {
				delete(v, name)
			} else if list, ok := sub.([]any); ok && len(list) > 0 && g.one(3) {
				v[name] = append(list, runtime.DeepCopyJSONValue(pick(g, list...)))
			} else {
				g.disturb(sub)
			}
		default:
			if g.one(3) {
				delete(v, name)
			} else {
				v[name] = g.another(sub)
			}
		}
	case []any:
		if len(v) == 0 {
			return
		}
		i := g.IntN(len(v))
		switch v[i].(type) {
		case map[string]any, []any:
			g.disturb(v[i])
		default:
			v[i] = g.another(v[i])
		}
	}
}

func (g generator) another(v any) any {
	switch v := v.(type) {
	case string:
		return pick(g, "", "x", v+"x", "HTTP", "Exact", "*.example.com", "Mirror")
	case int64:
		return pick(g, int64(0), v+1, -v, 1<<40)
	case bool:
		return !v
	default:
		return v
	}
}

var generatedType = regexp.MustCompile(`selfType\d+`)

func wordsOf(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, generatedType.ReplaceAllString(err.Error(), "selfType"))
	}
	slices.Sort(out)
	return out
}

func sortedKeys(m map[string]any) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Random schemas with rules get the same errors.
func TestRandomRuleVerdicts(t *testing.T) {
	wrong, rules := 0, 0
	for seed := range uint64(volume(*cases / 2)) {
		g := newGenerator(seed)
		props := g.ruled()
		want, _ := upstreamCheck(t, props)
		want = withoutTypeNames(want)
		mistakes := check.Schema(props, field.NewPath(schemaPath))
		got := wordsOf(mistakes.Errors())
		if mistakes.Structural() {
			report := celrule.Check(props, field.NewPath(schemaPath), celrule.CheckOptions{Broken: mistakes.Broken})
			got = append(got, wordsOf(report.Errors)...)
			rules += len(report.Estimates)
		}
		slices.Sort(got)
		// Of rules with the same cost upstream names an arbitrary one.
		contributed := func(word string) bool { return strings.Contains(word, "contributed to") }
		want, got = slices.DeleteFunc(want, contributed), slices.DeleteFunc(got, contributed)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s\n(-upstream +ours):\n%s", seed, text(props), diff)
		}
		if len(want) > 0 {
			wrong++
		}
	}
	t.Logf("%d expressions, %d wrong schemas", rules, wrong)
}

// Random objects of random schemas with rules get the same errors.
func TestRandomRuleErrors(t *testing.T) {
	compared, failed := 0, 0
	for seed := range uint64(volume(*cases / 2)) {
		g := newGenerator(seed + 1e6)
		props := g.ruled()
		upstream := newUpstreamRules(t, props)
		ours, err := celrule.New(props, nil)
		if err != nil {
			t.Fatal(err)
		}
		if upstream.validator == nil {
			continue
		}
		for range 8 {
			obj, old := g.fits(props).(map[string]any), map[string]any(nil)
			switch g.IntN(3) {
			case 0:
				old = runtime.DeepCopyJSON(obj)
				g.disturb(old)
			case 1:
				old = g.fits(props).(map[string]any)
			}
			got := wordsOf(ours.Validate(context.Background(), obj, old, celrule.Options{Update: true}))
			want := wordsOf(upstream.validate(obj, old))
			// If maps are compared, upstream's result may depend on their order.
			for range 50 {
				if slices.Equal(want, got) {
					break
				}
				want = wordsOf(upstream.validate(obj, old))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("seed %d: %s\n%s\nreplaces %s\n(-upstream +ours):\n%s", seed, text(props), text(obj), text(old), diff)
			}
			compared++
			if len(want) > 0 {
				failed++
			}
		}
	}
	t.Logf("%d comparisons, %d with errors", compared, failed)
}

func withoutTypeNames(words []string) []string {
	for i := range words {
		words[i] = generatedType.ReplaceAllString(words[i], "selfType")
	}
	slices.Sort(words)
	return words
}
