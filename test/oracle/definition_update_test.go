package oracle

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	crdvalidation "github.com/anykind/anykind/internal/schema/crd/validation"
)

// Updates between definitions with mistakes: both tolerate the same mistakes of the old one.
func TestDefinitionUpdatesRandom(t *testing.T) {
	compareUpdates(t, uint64(volume(*cases/2)), func(g generator) *apiextensionsv1.CustomResourceDefinition {
		schemas := []*apiextensionsv1.JSONSchemaProps{g.root(), g.root()}
		if g.one(2) {
			schemas[1] = schemas[0].DeepCopy()
		}
		crd := versions(schemas)
		if g.one(2) {
			crd.Spec.Versions = crd.Spec.Versions[:1]
		}
		return crd
	})
}

// The same with published definitions.
func TestDefinitionUpdatesCorpus(t *testing.T) {
	var small []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range definitions(t) {
		if len(text(crd.Spec)) < 100_000 {
			small = append(small, crd)
		}
	}
	compareUpdates(t, uint64(volume(*cases/50)), func(g generator) *apiextensionsv1.CustomResourceDefinition {
		crd := pick(g, small...).DeepCopy()
		crd.ResourceVersion = "1"
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{crd.Spec.Versions[0].Name}}
		return crd
	})
}

// compareUpdates compares the errors of definitions from make with random mistakes, as creates, and as
// updates of others with random mistakes.
func compareUpdates(t *testing.T, n uint64, make func(generator) *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	wrong, forgiven := 0, 0
	for seed := range n {
		g := newGenerator(seed + 7e6)
		before := make(g)
		for range g.IntN(4) {
			g.spoilDefinition(before)
		}
		after := before.DeepCopy()
		for range g.IntN(3) {
			g.spoilDefinition(after)
		}
		before, after = sent(t, before), sent(t, after)
		want, ok := upstreamUpdate(t, after, before)
		if !ok {
			continue
		}
		got := comparable(validateUpdate(after, before))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("seed %d: %.4000s\nreplaces %.4000s\n(-upstream +ours):\n%s", seed, text(after), text(before), diff)
		}
		if len(want) > 0 {
			wrong++
		}
		after.ResourceVersion = ""
		fresh, ok := upstreamUpdate(t, after, nil)
		if !ok {
			continue
		}
		if diff := cmp.Diff(fresh, comparable(validateUpdate(after, nil))); diff != "" {
			t.Fatalf("seed %d: %.4000s\n(-upstream +ours):\n%s", seed, text(after), diff)
		}
		if len(fresh) > len(want) {
			forgiven++
		}
	}
	t.Logf("%d updates of %d were wrong, %d of them more so if new", wrong, n, forgiven)
}

// sent returns a definition as a server decodes it.
func sent(t *testing.T, in *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	out := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal([]byte(text(in)), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// validateUpdate returns our errors of an update, or of a create if before is nil.
func validateUpdate(after, before *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	errs, _ := crdvalidation.Validate(after, before, 0)
	return errs
}

// upstreamUpdate returns upstream's errors of an update, or of a create if before is nil. ok is
// false if upstream panicked.
func upstreamUpdate(t *testing.T, after, before *apiextensionsv1.CustomResourceDefinition) (errs []string, ok bool) {
	t.Helper()
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	if before == nil {
		return comparable(validation.ValidateCustomResourceDefinition(context.Background(), convertedDefinition(t, after))), true
	}
	return comparable(validation.ValidateCustomResourceDefinitionUpdate(context.Background(), convertedDefinition(t, after), convertedDefinition(t, before))), true
}

// comparable returns errors without upstream's random choices and without values that are whole parts
// of the definition.
func comparable(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		switch {
		case strings.Contains(err.Detail, "contributed to"):
		case aboutValue(err):
			out = append(out, ofDefault(err))
		case strings.HasPrefix(err.Detail, "OpenAPIV3Schema '"): // any of several
			out = append(out, fmt.Sprintf("%s: %s: unsupported", err.Field, err.Type))
		case err.Field == "spec.versions":
			out = append(out, fmt.Sprintf("%s: %s: %s", err.Field, err.Type, err.Detail))
		default:
			out = append(out, generatedType.ReplaceAllString(err.Error(), "selfType"))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// spoilDefinition adds a mistake to a definition, or a value that would be a mistake elsewhere.
func (g generator) spoilDefinition(crd *apiextensionsv1.CustomResourceDefinition) {
	spec := &crd.Spec
	if len(spec.Versions) == 0 || g.one(3) {
		g.spoilOutside(crd)
		return
	}
	v := &spec.Versions[g.IntN(len(spec.Versions))]
	switch g.IntN(14) {
	case 0:
		v.Schema = pick(g, nil, &apiextensionsv1.CustomResourceValidation{})
	case 1:
		v.Name = pick(g, "v1", "v2", "v9", "", "V")
	case 2:
		v.Storage = !v.Storage
	case 3:
		v.Served = !v.Served
	case 4:
		v.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: pick(g, nil, &apiextensionsv1.CustomResourceSubresourceStatus{})}
		if g.one(2) {
			v.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
				SpecReplicasPath: pick(g, ".spec.replicas", ".status.x", "", "spec"), StatusReplicasPath: pick(g, ".status.replicas", ".spec.a", ""),
				LabelSelectorPath: pick(g, nil, new(".status.s"), new(".a"), new("")),
			}
		}
	case 5:
		v.AdditionalPrinterColumns = append(v.AdditionalPrinterColumns, apiextensionsv1.CustomResourceColumnDefinition{
			Name: pick(g, "A", ""), Type: pick(g, "string", "foo", ""), Format: pick(g, "", "int32", "foo"), JSONPath: pick(g, ".a", "a", "", ".a["),
		})
	case 6:
		for range g.IntN(10) {
			v.SelectableFields = append(v.SelectableFields, apiextensionsv1.SelectableField{JSONPath: pick(g, ".spec", ".spec.a", ".spec.b", ".a[", "", ".metadata.name")})
		}
	case 7:
		v.Deprecated, v.DeprecationWarning = g.one(2), pick(g, nil, new("x"), new(""), new("a\nb"), new(strings.Repeat("x", 257)))
	default:
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			v.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: g.root()}
			return
		}
		g.spoilStored(v.Schema.OpenAPIV3Schema)
	}
}

// spoilStored adds a mistake to a schema, mostly one that an update may keep.
func (g generator) spoilStored(root *apiextensionsv1.JSONSchemaProps) {
	if g.one(3) {
		g.spoil(root)
		return
	}
	if root.Properties == nil {
		root.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	}
	str := apiextensionsv1.JSONSchemaProps{Type: "string"}
	items := func(p apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaPropsOrArray {
		return &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &p}
	}
	entry := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"k": str, "v": str}}
	var p apiextensionsv1.JSONSchemaProps
	switch g.IntN(12) {
	case 0: // a key that is neither required nor has a default
		p = apiextensionsv1.JSONSchemaProps{Type: "array", Items: items(entry), XListType: new("map"), XListMapKeys: []string{"k"}}
	case 1: // a nullable item
		entry.Required, entry.Nullable = []string{"k"}, true
		p = apiextensionsv1.JSONSchemaProps{Type: "array", Items: items(entry), XListType: new("map"), XListMapKeys: []string{"k"}}
	case 2: // items of a set that are not atomic
		p = apiextensionsv1.JSONSchemaProps{Type: "array", Items: items(entry), XListType: new("set")}
	case 3:
		p = apiextensionsv1.JSONSchemaProps{Type: "array", Items: items(apiextensionsv1.JSONSchemaProps{Type: "array", Items: items(str)}), XListType: new("set")}
	case 4: // a default that would be pruned
		entry.Default = asJSON(map[string]any{"k": "x", "unknown": int64(1)})
		p = entry
	case 5: // a default that is not valid
		str.Default = asJSON(pick(g, any(int64(1)), any("x"), any(map[string]any{"a": "b"})))
		p = str
	case 6:
		p = apiextensionsv1.JSONSchemaProps{Type: pick(g, "null", "foo", "")}
	case 7:
		p = apiextensionsv1.JSONSchemaProps{Type: "string", Pattern: pick(g, "(", "^a$", "a{1001}", `\p{Foo}`)}
	case 8:
		p = apiextensionsv1.JSONSchemaProps{Type: "string", XValidations: apiextensionsv1.ValidationRules{{
			Rule: pick(g, "self == 'a'", "self ==", "oldSelf == self", "self.foo"), MessageExpression: pick(g, "", "self", "self ==", "1"),
			Reason: pick(g, nil, new(apiextensionsv1.FieldValueInvalid)), FieldPath: pick(g, "", ".a"),
		}}}
	case 9: // a rule above the cost limit
		p = apiextensionsv1.JSONSchemaProps{Type: "array", Items: items(str), XValidations: apiextensionsv1.ValidationRules{{Rule: "self.all(x, self.exists(y, x == y))"}}}
	case 10: // not structural
		root.AnyOf = append(root.AnyOf, apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{"nowhere": {}}})
		return
	default:
		delete(root.Properties, pick(g, "spec", "x", "y"))
		return
	}
	if g.one(4) {
		p = apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"inner": p}}
	}
	root.Properties[pick(g, "x", "y")] = p
}

// spoilOutside adds a mistake outside the versions of a definition.
func (g generator) spoilOutside(crd *apiextensionsv1.CustomResourceDefinition) {
	spec := &crd.Spec
	switch g.IntN(13) {
	case 0:
		spec.PreserveUnknownFields = !spec.PreserveUnknownFields
	case 1:
		crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: pick(g, apiextensionsv1.ConditionTrue, apiextensionsv1.ConditionFalse)}}
	case 2:
		spec.Scope = pick(g, apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped, "", "Foo")
	case 3:
		spec.Names.Kind = pick(g, "Other", "", "a_b", spec.Names.ListKind)
	case 4:
		spec.Names.Plural, spec.Names.Singular = pick(g, spec.Names.Plural, "others", ""), pick(g, "x", "", "X")
	case 5:
		spec.Names.ShortNames, spec.Names.Categories = pick(g, nil, []string{"a", "B"}), pick(g, nil, []string{"a", ""})
	case 6:
		spec.Group = pick(g, spec.Group, "x.k8s.io", "other.example.com", "", "nodots", "_.a")
	case 7:
		crd.Annotations = map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: pick(g, "", "x", "https://a.b/c", "unapproved, x")}
	case 8:
		crd.Status.StoredVersions = pick(g, nil, []string{"v1"}, []string{"v1", "v2"}, []string{"gone"})
	case 9:
		crd.Status.AcceptedNames.Plural = pick(g, "", "x", "X_")
	case 10:
		if len(spec.Versions) > 0 {
			spec.Versions = pick(g, nil, spec.Versions[:1], append(slices.Clip(spec.Versions), *spec.Versions[0].DeepCopy()))
		}
	default:
		g.spoilConversion(spec)
	}
}

func (g generator) spoilConversion(spec *apiextensionsv1.CustomResourceDefinitionSpec) {
	spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: pick(g, apiextensionsv1.NoneConverter, apiextensionsv1.WebhookConverter, apiextensionsv1.WebhookConverter, "Foo")}
	if g.one(4) {
		return
	}
	client := &apiextensionsv1.WebhookClientConfig{CABundle: pick(g, nil, []byte("bad"), []byte("bad too"))}
	if g.one(2) {
		client.URL = pick(g, new("https://a.example.com/x"), new("http://a"), new(":"))
	}
	if client.URL == nil || g.one(4) {
		client.Service = &apiextensionsv1.ServiceReference{Name: pick(g, "s", ""), Namespace: pick(g, "n", ""), Path: pick(g, nil, new("/a"), new("a//b")), Port: pick(g, new(int32(443)), new(int32(0)))}
	}
	spec.Conversion.Webhook = &apiextensionsv1.WebhookConversion{
		ClientConfig: pick(g, client, client, client, nil), ConversionReviewVersions: pick(g, nil, []string{"v1"}, []string{"v7"}, []string{"v7", "v7"}, []string{"V"}, []string{"v1beta1", "x"}),
	}
}
