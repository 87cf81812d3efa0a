package oracle

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Updates of definitions whose stored rules exceed the cost limit, or use functions that an older
// server lacks.
func TestRandomRuleUpdates(t *testing.T) {
	wrong := 0
	for seed := range uint64(volume(*cases / 10)) {
		g := newGenerator(seed + 2e6)
		schemas := []*apiextensionsv1.JSONSchemaProps{g.ruled(), g.ruled()}
		for _, s := range schemas {
			g.addNew(s)
		}
		before := versions(schemas)
		for i, s := range schemas {
			schemas[i] = s.DeepCopy()
			if g.one(2) {
				g.addNew(schemas[i])
			}
			if g.one(3) {
				g.addRules(schemas[i], 1)
			}
		}
		after := versions(schemas)
		if g.one(4) {
			before.Spec.Versions, after.Spec.Versions = before.Spec.Versions[:1], after.Spec.Versions[:1]
		}
		want := aboutRules(validation.ValidateCustomResourceDefinitionUpdate(context.Background(), convertedDefinition(t, after), convertedDefinition(t, before)))
		got := aboutRules(validateUpdate(sent(t, after), sent(t, before)))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %s\nreplaces %s\n(-upstream +ours):\n%s", seed, text(after.Spec), text(before.Spec), diff)
		}
		if len(want) > 0 {
			wrong++
		}
	}
	t.Logf("%d updates were wrong", wrong)
}

// addNew adds rules that an update may keep and not add, or whose cost is tolerated only while nothing
// changes.
func (g generator) addNew(p *apiextensionsv1.JSONSchemaProps) {
	if g.one(2) {
		p.XValidations = append(p.XValidations, apiextensionsv1.ValidationRule{Rule: pick(g, "[1].includes(1)", "[1, 2].includes(2)"), MessageExpression: pick(g, "", "[1].includes(1) ? 'a' : 'b'")})
	}
	if g.one(2) {
		p.Properties["costly"] = apiextensionsv1.JSONSchemaProps{
			Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(pick(g, int64(1), 4))}},
			XValidations: apiextensionsv1.ValidationRules{{Rule: "self.all(x, self.exists(y, x == y)) || " + pick(g, "true", "false")}},
		}
	}
}

func versions(schemas []*apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	out := definition(schemas[0])
	out.APIVersion, out.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	out.ResourceVersion = "1"
	out.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	out.Status.StoredVersions = []string{kind.Version}
	second := out.Spec.Versions[0]
	second.Name, second.Storage = "v2", false
	second.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: schemas[1]}
	out.Spec.Versions = append(out.Spec.Versions, second)
	return out
}

func convertedDefinition(t *testing.T, in *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	out := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(in.DeepCopy(), out, nil); err != nil {
		t.Fatal(err)
	}
	return out
}

func treeOf(t *testing.T, in *apiextensionsv1.CustomResourceDefinition) map[string]any {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// aboutRules returns the errors about rules, without upstream's random choices.
func aboutRules(errs field.ErrorList) []string {
	var out []string
	for _, err := range wordsOf(errs) {
		if (strings.Contains(err, "x-kubernetes-validations")) && !strings.Contains(err, "contributed to") {
			out = append(out, err)
		}
	}
	slices.Sort(out)
	return out
}
