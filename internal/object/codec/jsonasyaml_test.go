package codec

import (
	"math/rand/v2"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
)

// JSON that is sent as YAML is parsed as JSON if the result is the same.
func TestJSONAsYAML(t *testing.T) {
	for _, same := range []string{
		`{}`, `{"a":1}`, ` {"a": [1, true, null, "x"], "b": {"c": -5}} `, "{\n  \"a\": 1\n}\n", `{"a":"é – 漢字 🙂"}`,
		`{"a":"\u003cb\u003e \"quoted\" \\ \n"}`, `{"yes":"no","on":"1.5","~":"# no comment","a: b":"- c"}`,
	} {
		if !sameAsJSON([]byte(same)) {
			t.Errorf("%s is not taken for JSON", same)
		}
	}
	for _, other := range []string{
		``, `null`, `[]`, `a: b`, `{a: 1}`, `{"a":1.0}`, `{"a":1e3}`, `{"a":-0}`, `{"a":01}`, `{"a":12345678901234567890}`, `{"a":1,}`,
		`{"a":1}}`, `{"a":1} x`, `{"a":'b'}`, `{"a":yes}`, `{"a":1 }#`, "{\"a\":\t1}", "{\"a\"\n:1}", "{\"a\":\"b\nc\"}", `{"<<":{}}`, `{"a":truex}`,
		`{"a":"\u2028"}`, "{\"a\":\"\u0085\"}", "{\"a\":\"\xff\"}", `{"` + strings.Repeat("k", 1100) + `":1}`, "{\"a\":1}\n---\n{}",
	} {
		if sameAsJSON([]byte(other)) {
			t.Errorf("%s is taken for JSON", other)
		}
	}
}

// For random documents, the JSON and YAML parsers agree whenever sameAsJSON is true.
func TestJSONIsReadAsYAML(t *testing.T) {
	pieces := []string{
		"{", "}", "{", "}", "[", "]", `"a"`, `"b"`, `"c"`, ":", ":", ",", ",", " ", "\n", "1", "-7", "0", "true", "null", `"x y"`, `"\u0026é"`, `"\""`,
		`"- "`, `"#"`, `"<<"`, "\t", "'", "|", "1.5", "~", "&a", "*a", "!!str", "---", "🙂", `"\\"`, `"%"`, `"k: v"`, `": "`,
	}
	r := rand.New(rand.NewPCG(1, 2))
	var random func(depth int) string
	random = func(depth int) string {
		space := []string{"", "", " ", "\n", "\n  "}[r.IntN(5)]
		switch n := r.IntN(8); {
		case depth > 3 || n < 4:
			return space + pieces[r.IntN(len(pieces))]
		case n == 4:
			return "[" + random(depth+1) + "," + random(depth+1) + space + "]"
		default:
			return `{"` + string(rune('a'+r.IntN(3))) + `":` + random(depth+1) + "," + space + `"d":` + random(depth+1) + "}"
		}
	}
	taken := 0
	for range 20_000 {
		doc := `{"a":` + random(0) + `,"b":` + random(0) + "}"
		if r.IntN(4) == 0 {
			at := r.IntN(len(doc))
			doc = doc[:at] + pieces[r.IntN(len(pieces))] + doc[at:]
		}
		if !sameAsJSON([]byte(doc)) {
			continue
		}
		taken++
		got, duplicates, err := Decode(YAML, []byte(doc))
		if err != nil {
			t.Errorf("%s: %v", doc, err)
			continue
		}
		viaYAML, strict := yaml.YAMLToJSONStrict([]byte(doc))
		if strict != nil {
			if len(duplicates) == 0 || duplicates[0] != strict.Error() {
				t.Errorf("%s: complaints %q, want %q", doc, duplicates, strict)
			}
			continue
		}
		want, _, err := decodeJSON(viaYAML)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := object.AppendJSON(nil, got), object.AppendJSON(nil, want); string(a) != string(b) {
			t.Errorf("%q is read as %s, by YAML as %s", doc, a, b)
		}
	}
	if taken < 500 {
		t.Errorf("only %d documents were JSON", taken)
	}
}
