package translate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/golden"
	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// Each file of testdata has a JSON schema, its structural schema, and the notes. Its comment ends with
// a line with the type, if one must be chosen.
func TestSchema(t *testing.T) {
	golden.Each(t, "testdata/*.txtar", func(t *testing.T, archive *golden.Archive) {
		_, typ, _ := strings.Cut(strings.TrimSpace(string(archive.Comment)), "\ntype: ")
		document, _, err := codec.Decode(codec.YAML, archive.Files[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Schema(document, typ)
		if err != nil {
			t.Fatal(err)
		}
		if errs := jsonschema.CheckStructural(r.Schema, field.NewPath("schema")); len(errs) > 0 {
			t.Error(errs.ToAggregate())
		}
		got, err := yaml.Marshal(r.Schema)
		if err != nil {
			t.Fatal(err)
		}
		notes := "type " + r.Type + "\n"
		for _, n := range r.Notes {
			notes += fmt.Sprintf("%s: %s\n", n.Path, n.Text)
		}
		for i, text := range []string{string(got), notes} {
			golden.Check(t, &archive.Files[i+1], text)
		}
	})
}

// A keyword and what becomes of it, as the spec of a kind.
func TestKeywords(t *testing.T) {
	for _, tt := range []struct{ name, in, want, note string }{
		{"a boolean schema", `true`, `{"x-kubernetes-preserve-unknown-fields":true}`, ""},
		{"nothing", `false`, ``, ""},
		{"a type and null", `{"type":["string","null"]}`, `{"type":"string","nullable":true}`, ""},
		{"OpenAPI's null", `{"type":"string","nullable":true}`, `{"type":"string","nullable":true}`, ""},
		{"a number or a name", `{"type":["string","integer"]}`, `{"x-kubernetes-int-or-string":true}`, ""},
		{"types that do not go together", `{"type":["string","object"]}`, `{"x-kubernetes-preserve-unknown-fields":true}`, "values can be object or string: any value is accepted"},
		{"a constant", `{"const":"A"}`, `{"type":"string","enum":["A"]}`, ""},
		{"an enum of numbers", `{"enum":[1,2]}`, `{"type":"integer","enum":[1,2]}`, ""},
		{"an enum with null", `{"enum":["a",null]}`, `{"type":"string","enum":["a",null],"nullable":true}`, ""},
		{"bounds of draft 4", `{"type":"integer","minimum":1,"exclusiveMinimum":true}`, `{"type":"integer","minimum":1,"exclusiveMinimum":true}`, ""},
		{"bounds of draft 6", `{"type":"integer","exclusiveMinimum":1}`, `{"type":"integer","minimum":1,"exclusiveMinimum":true}`, ""},
		{"any object", `{"type":"object"}`, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, ""},
		{"a map", `{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"object","additionalProperties":{"type":"string"}}`, ""},
		{"a map by keys", `{"type":"object","patternProperties":{"^[0-9]+$":{"type":"string"}},"additionalProperties":false}`, `{"type":"object","additionalProperties":{"type":"string"}}`, "the pattern ^[0-9]+$ of keys is not checked; use a CEL rule"},
		{"fields and a map", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, `{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-preserve-unknown-fields":true}`, "additionalProperties is not checked beside properties: all fields are preserved"},
		{"a set", `{"type":"array","items":{"type":"string"},"uniqueItems":true}`, `{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, ""},
		{"unique objects", `{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}},"uniqueItems":true}`, `{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}`, "uniqueItems is not checked: the items are not scalars"},
		{"a tuple", `{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}`, `{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}}`, "the 2 schemas of positions in the list are not checked: any items are accepted"},
		{"bytes", `{"type":"string","contentEncoding":"base64"}`, `{"type":"string","format":"byte"}`, ""},
		{"a format", `{"type":"string","format":"date-time"}`, `{"type":"string","format":"date-time"}`, ""},
		{"a format of others", `{"type":"string","format":"idn-email"}`, `{"type":"string"}`, "servers do not enforce the format idn-email: it is omitted"},
		{"a pattern of others", `{"type":"string","pattern":"^(?!x)"}`, `{"type":"string"}`, "the pattern ^(?!x) is not valid in RE2 and is omitted"},
		{"a pointer", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, `{"type":"string","nullable":true}`, ""},
		{"constants", `{"oneOf":[{"const":"A","title":"a"},{"const":"B"}]}`, `{"description":"a","type":"string","enum":["A","B"]}`, ""},
		{"alternatives of fields", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, ""},
		{"alternatives of objects", `{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}]}`, `{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, "anyOf is not checked: objects may have the fields of each branch"},
		{"all of", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"required":["a"]}],"description":"A."}`, `{"description":"A.","type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`, ""},
		{"a condition", `{"type":"string","if":{"const":"a"},"then":{"minLength":1}}`, `{"type":"string"}`, "if is not checked; use a CEL rule"},
		{"another document", `{"$ref":"other.json"}`, `{"x-kubernetes-preserve-unknown-fields":true}`, "other.json is not resolved: the reference is to another document; any value is accepted"},
		{"a reference to nothing", `{"$ref":"#/$defs/None"}`, `{"x-kubernetes-preserve-unknown-fields":true}`, "#/$defs/None is not resolved: the target of the reference is missing; any value is accepted"},
		{"a reference with a description", `{"$ref":"#/$defs/Name","description":"Its name."}`, `{"description":"Its name.","type":"string","minLength":1}`, ""},
		{"a type with such a name", `{"$ref":"#/$defs/Time"}`, `{"type":"object","properties":{"hours":{"type":"integer"}}}`, ""},
		{"a type of Kubernetes", `{"$ref":"#/$defs/IntOrString","description":"A port."}`, `{"description":"A port.","x-kubernetes-int-or-string":true}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var document map[string]any
			text := fmt.Sprintf(`{"type":"object","properties":{"x":%s},"$defs":{"Name":{"type":"string","minLength":1},"Time":{"type":"object","properties":{"hours":{"type":"integer"}}},"IntOrString":{"type":"object","properties":{"Type":{"type":"integer"}}}}}`, tt.in)
			document, _, err := codec.Decode(codec.JSON, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			r, err := Schema(document, "")
			if err != nil {
				t.Fatal(err)
			}
			spec := r.Schema.Properties["spec"]
			got := ""
			if x, ok := spec.Properties["x"]; ok {
				got = canonical(t, x)
			}
			var want v1.JSONSchemaProps
			if tt.want != "" {
				if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
					t.Fatal(err)
				}
				tt.want = canonical(t, want)
			}
			if got != tt.want {
				t.Errorf("%s\nwant\n%s", got, tt.want)
			}
			var notes []string
			for _, n := range r.Notes {
				if n.Path != "spec.x" {
					t.Errorf("a note about %q: %s", n.Path, n.Text)
				}
				notes = append(notes, n.Text)
			}
			if strings.Join(notes, "; ") != tt.note {
				t.Errorf("notes %q, want %q", notes, tt.note)
			}
			if errs := jsonschema.CheckStructural(r.Schema, field.NewPath("schema")); len(errs) > 0 {
				t.Error(errs.ToAggregate())
			}
		})
	}
}

func canonical(t *testing.T, s v1.JSONSchemaProps) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestNoSchema(t *testing.T) {
	for _, tt := range []struct{ text, typ, want string }{
		{`{}`, "", "not a JSON schema"},
		{`{"$defs":{"A":{},"B":{}}}`, "", "choose one with --type: A, B"},
		{`{"$defs":{"A":{},"B":{}}}`, "C", "no type C; the schema has A, B"},
		{`{"type":"string"}`, "", "a kind needs an object"},
	} {
		document, _, err := codec.Decode(codec.JSON, []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Schema(document, tt.typ); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.text, err, tt.want)
		}
	}
}
