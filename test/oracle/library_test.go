package oracle

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	upstreamcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/schema/celrule"
)

// All functions for expressions: the same result and estimated cost of each expression as a new and as
// a stored one, the same error, and exactly the same cost of an evaluation.
func TestLibrary(t *testing.T) {
	props, obj, expressions := library(t)
	accepted := 0
	for _, rule := range expressions {
		props.XValidations = apiextensionsv1.ValidationRules{{Rule: rule}}
		upstream := newUpstreamRules(t, props)

		want, _ := upstreamCheck(t, props)
		want = withoutTypeNames(want)
		if got := wordsOf(celrule.Check(props, field.NewPath(schemaPath), celrule.CheckOptions{}).Errors); !slices.Equal(got, want) {
			t.Errorf("%s as a new one (-upstream +ours):\n%s", rule, cmp.Diff(want, got))
		}
		if len(want) == 0 {
			accepted++
		}
		stored := func(string) bool { return true }
		for _, loader := range []struct {
			envs    upstreamcel.EnvLoader
			options celrule.CheckOptions
		}{
			{upstreamcel.NewExpressionsEnvLoader(), celrule.CheckOptions{}},
			{upstreamcel.StoredExpressionsEnvLoader(), celrule.CheckOptions{Stored: stored, StoredMessage: stored}},
		} {
			report := celrule.Check(props, field.NewPath(schemaPath), loader.options)
			each, refusal := upstreamCompile(t, upstream, loader.envs)
			var got string
			for _, err := range report.Errors {
				if err.Type == field.ErrorTypeInvalid {
					got = generatedType.ReplaceAllString(err.Detail, "selfType")
				}
			}
			if got != refusal {
				t.Errorf("%s: %q, want %q", rule, got, refusal)
			}
			if got := report.Estimates[0].Each; got != each {
				t.Errorf("%s is estimated to cost %d, want %d", rule, got, each)
			}
		}
		sameEvaluation(t, upstream, props, rule, obj)
	}
	t.Logf("%d expressions, %d are accepted as new ones", len(expressions), accepted)
}

// upstreamCompile returns the worst-case cost of the only rule, or its compile error.
func upstreamCompile(t *testing.T, u upstreamRules, loader upstreamcel.EnvLoader) (cost uint64, refusal string) {
	t.Helper()
	results, err := upstreamcel.Compile(u.structural, model.SchemaDeclType(u.structural, true), celconfig.PerCallLimit, environment.MustBaseEnvSet(utilversion.MajorMinor(1, 36)), loader)
	if err != nil {
		t.Fatal(err)
	}
	if err := results[0].Error; err != nil {
		return 0, generatedType.ReplaceAllString(err.Detail, "selfType")
	}
	return results[0].MaxCost, ""
}

// sameEvaluation compares errors and costs of one evaluation. A budget that is just enough shows the
// cost.
func sameEvaluation(t *testing.T, u upstreamRules, props *apiextensionsv1.JSONSchemaProps, rule string, obj map[string]any) {
	t.Helper()
	ctx := context.Background()
	errs, remaining := u.validator.Validate(ctx, nil, u.structural, obj, nil, celconfig.RuntimeCELCostBudget)
	cost := celconfig.RuntimeCELCostBudget - remaining
	ours, err := celrule.New(props, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := wordsOf(errs)
	if got := wordsOf(ours.Validate(ctx, obj, nil, celrule.Options{Budget: max(cost, 1)})); !slices.Equal(got, want) {
		t.Errorf("%s with a budget of %d (-upstream +ours):\n%s", rule, cost, cmp.Diff(want, got))
	}
	if cost == 0 {
		return
	}
	less := cost - 1
	if less == 0 {
		less = -1
	}
	if got := wordsOf(ours.Validate(ctx, obj, nil, celrule.Options{Budget: less})); len(got) != 1 || !strings.Contains(got[0], "running out of cost budget") {
		t.Errorf("%s costs less than %d: %q", rule, cost, got)
	}
}

// library reads the list of functions: a schema, an object, and expressions that hold, fail or do not
// compile.
func library(t *testing.T) (props *apiextensionsv1.JSONSchemaProps, obj map[string]any, expressions []string) {
	t.Helper()
	data, err := os.ReadFile("../../internal/schema/celrule/testdata/library.yaml")
	if err == nil {
		data, err = yaml.YAMLToJSON(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	props = &apiextensionsv1.JSONSchemaProps{Type: "object"}
	var all map[string]any
	for _, err := range []error{json.Unmarshal(data, props), utiljson.Unmarshal(data, &all)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, section := range []string{"holds", "fails", "refused"} {
		for line := range strings.Lines(all[section].(string)) {
			if !strings.HasPrefix(line, "#") {
				expressions = append(expressions, strings.TrimSpace(line))
			}
		}
	}
	return props, all["object"].(map[string]any), expressions
}
