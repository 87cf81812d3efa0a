package oracle

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/check"
)

const schemaPath = "spec.validation.openAPIV3Schema"

// Published definitions have no errors.
func TestCorpusCheck(t *testing.T) {
	for _, crd := range definitions(t) {
		for _, v := range crd.Spec.Versions {
			for _, err := range check.Schema(v.Schema.OpenAPIV3Schema, field.NewPath(schemaPath)).Errors() {
				t.Errorf("%s/%s: %v", crd.Name, v.Name, err)
			}
		}
	}
}

// Random schemas with mistakes get the same errors with the same messages.
func TestCheckRandom(t *testing.T) {
	wrong := 0
	for seed := range uint64(volume(*cases / 2)) {
		g := newGenerator(seed)
		props := g.root()
		if g.one(2) {
			g.restrict(props)
		}
		for range g.IntN(4) {
			g.spoil(props)
		}
		if compareCheck(t, props, nil) {
			wrong++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d wrong schemas", wrong)
}

// Updates of random schemas with mistakes: unchanged mistakes are tolerated.
func TestCheckUpdateRandom(t *testing.T) {
	wrong := 0
	for seed := range uint64(volume(*cases / 2)) {
		g := newGenerator(seed)
		old := g.root()
		for range 1 + g.IntN(2) {
			g.spoil(old)
		}
		props := old.DeepCopy()
		for range g.IntN(3) {
			g.spoil(props)
		}
		if compareCheck(t, props, old) {
			wrong++
		}
		if t.Failed() {
			t.Fatalf("seed %d, in place of %s", seed, text(old))
		}
	}
	t.Logf("%d wrong schemas", wrong)
}

// compareCheck compares the errors of a schema, which may replace another, and reports whether there
// are any.
func compareCheck(t *testing.T, props, old *apiextensionsv1.JSONSchemaProps) bool {
	t.Helper()
	want, wantDefaults := upstreamCheckUpdate(t, props, old)
	var tolerance check.Tolerance
	tolerance.Learn(old)
	tolerance.NonStructural = false // except where unknown fields are pruned
	var got, gotDefaults []string
	for _, err := range tolerance.Check(props, field.NewPath(schemaPath)).Errors() {
		if aboutValue(err) {
			gotDefaults = append(gotDefaults, ofDefault(err))
		} else {
			got = append(got, err.Error())
		}
	}
	for _, list := range [][]string{got, want, gotDefaults, wantDefaults} {
		slices.Sort(list)
	}
	same(t, props, nil, "complaints", got, want)
	same(t, props, nil, "defaults", gotDefaults, wantDefaults)
	return len(want)+len(wantDefaults) > 0
}

// aboutValue reports whether an error is about the value of a default.
func aboutValue(err *field.Error) bool {
	return strings.Contains(err.Field, ".default") &&
		!strings.HasPrefix(err.Detail, "must not be set") && !strings.HasPrefix(err.Detail, "this property is in") && !strings.HasSuffix(err.Detail, "to be structural")
}

// ofDefault returns an error about a default in a comparable form. Of several errors about embedded
// objects upstream reports a random one, so the choice is removed, as is the state of the default at
// that moment.
func ofDefault(err *field.Error) string {
	for _, detail := range []string{"must be a string", "must result in valid metadata", "json: ", "parsing time", "must not have unknown fields"} {
		if strings.HasPrefix(err.Detail, detail) {
			before, _, _ := strings.Cut(err.Field, ".default")
			return before
		}
	}
	return err.Error()
}

// upstreamCheck returns upstream's errors about a schema, and separately those about the values of its
// defaults.
func upstreamCheck(t *testing.T, props *apiextensionsv1.JSONSchemaProps) (wrong, defaults []string) {
	t.Helper()
	return upstreamCheckUpdate(t, props, nil)
}

// upstreamCheckUpdate is upstreamCheck for a schema that replaces old, or for a new one if old is nil.
func upstreamCheckUpdate(t *testing.T, props, old *apiextensionsv1.JSONSchemaProps) (wrong, defaults []string) {
	t.Helper()
	ctx := context.Background()
	var errs field.ErrorList
	if old == nil {
		errs = validation.ValidateCustomResourceDefinition(ctx, internalDefinition(t, props))
	} else {
		errs = validation.ValidateCustomResourceDefinitionUpdate(ctx, internalDefinition(t, props), internalDefinition(t, old))
	}
	for _, err := range errs {
		if !strings.HasPrefix(err.Field, schemaPath) {
			t.Fatalf("upstream complains about something else: %v", err)
		}
		if aboutValue(err) {
			defaults = append(defaults, ofDefault(err))
		} else {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong, defaults
}

func internalDefinition(t *testing.T, props *apiextensionsv1.JSONSchemaProps) *apiextensions.CustomResourceDefinition {
	t.Helper()
	crd := definition(props)
	crd.ResourceVersion = "1"
	crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	crd.Status.StoredVersions = []string{kind.Version}
	in := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd.DeepCopy(), in, nil); err != nil {
		t.Fatal(err)
	}
	return in
}

// spoil makes one mistake somewhere in a schema.
func (g generator) spoil(p *apiextensionsv1.JSONSchemaProps) {
	names := slices.Sorted(maps.Keys(p.Properties))
	switch {
	case g.one(4):
		g.mistake(p)
	case len(names) > 0:
		name := pick(g, names...)
		sub := p.Properties[name]
		g.spoil(&sub)
		p.Properties[name] = sub
	case p.Items != nil && p.Items.Schema != nil:
		g.spoil(p.Items.Schema)
	case p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil:
		g.spoil(p.AdditionalProperties.Schema)
	default:
		g.mistake(p)
	}
}

func (g generator) mistake(p *apiextensionsv1.JSONSchemaProps) {
	switch g.IntN(30) {
	case 0:
		p.Type = ""
	case 1:
		p.Type = pick(g, "null", "foo", "array", "object", "string")
	case 2:
		p.Items = nil
	case 3:
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: g.one(2)}
	case 4:
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: g.schema(1)}
	case 5:
		p.XIntOrString = true
	case 6:
		p.XEmbeddedResource = true
	case 7:
		p.XPreserveUnknownFields = new(g.one(2))
	case 8:
		p.Pattern = pick(g, "a", "(")
	case 9:
		p.UniqueItems = true
	case 10:
		p.Ref = new("#/x")
	case 11:
		p.XListType = new(pick(g, "set", "map", "atomic", "foo"))
	case 12:
		p.XListMapKeys = []string{pick(g, "a", "b"), pick(g, "a", "c")}
	case 13:
		p.XMapType = new(pick(g, "granular", "atomic", "foo"))
	case 14:
		p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{JSONSchemas: []apiextensionsv1.JSONSchemaProps{*g.schema(1)}}
	case 15:
		p.Definitions = apiextensionsv1.JSONSchemaDefinitions{"x": *g.schema(1)}
	case 16:
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{"metadata": *g.schema(1), "kind": *g.schema(1)}
	case 17:
		p.Type = "array"
		p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: g.object(1)}
		p.XListType = new(pick(g, "set", "map"))
		p.XListMapKeys = []string{"a"}
	case 18:
		p.PatternProperties = map[string]apiextensionsv1.JSONSchemaProps{"x": {}}
	case 19:
		p.ID = "x"
	case 20:
		p.XIntOrString, p.Type = true, ""
		p.AnyOf = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
	case 21:
		p.XIntOrString, p.Type = true, ""
		p.AllOf = []apiextensionsv1.JSONSchemaProps{{AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}}, {Pattern: "x"}}
	case 22:
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{"metadata": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			pick(g, "name", "generateName", "labels"): {Type: "string"}, pick(g, "name", "generateName"): {Type: "string"},
		}}}
	default:
		clause := g.clause(2)
		switch g.IntN(4) {
		case 0:
			p.AllOf = append(p.AllOf, clause)
		case 1:
			p.AnyOf = append(p.AnyOf, clause)
		case 2:
			p.OneOf = append(p.OneOf, clause)
		default:
			p.Not = &clause
		}
	}
}

// clause returns a schema for a junctor.
func (g generator) clause(depth int) apiextensionsv1.JSONSchemaProps {
	p := apiextensionsv1.JSONSchemaProps{}
	if depth > 0 && g.one(2) {
		p.Properties = map[string]apiextensionsv1.JSONSchemaProps{pick(g, "spec", "status", "a", "b", "metadata"): g.clause(depth - 1)}
	}
	if depth > 0 && g.one(4) {
		p.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: new(g.clause(depth - 1))}
	}
	if depth > 0 && g.one(4) {
		p.AnyOf = []apiextensionsv1.JSONSchemaProps{g.clause(depth - 1), {Type: "string"}}
	}
	switch g.IntN(14) {
	case 0:
		p.Type = "string"
	case 1:
		p.Title = "x"
	case 2:
		p.Description = "x"
	case 3:
		p.Default = asJSON(1)
	case 4:
		p.Nullable = true
	case 5:
		p.XPreserveUnknownFields = new(true)
	case 6:
		p.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: g.one(2)}
	case 7:
		p.XListType = new("atomic")
	case 8:
		p.XIntOrString = true
	case 9:
		p.XEmbeddedResource = true
	case 10:
		p.Required = []string{"a"}
	}
	return p
}
