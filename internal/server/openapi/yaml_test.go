package openapi

import (
	"encoding/json"
	"reflect"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

func TestYAML(t *testing.T) {
	for _, c := range []struct{ json, yaml string }{
		{`"atomic"`, "atomic\n"},
		{`"IfNotPresent"`, "IfNotPresent\n"},
		{`""`, "''\n"},
		{`"True"`, "'True'\n"},
		{`"it's: #1"`, "'it''s: #1'\n"},
		{`"a\nb\u007f\u2028é\ud83d\ude00"`, "\"a\\u000ab\\u007f\\u2028é\U0001f600\"\n"},
		{`true`, "true\n"},
		{`1.5`, "1.5\n"},
		{`-3`, "-3\n"},
		{`null`, "null\n"},
		{`[]`, "[]\n"},
		{`{}`, "{}\n"},
		{`["name","type"]`, "- name\n- type\n"},
		{`{"b":{"c":[1,{"d":2,"e":[]}]},"a":{}}`, "a: {}\nb:\n  c:\n  - 1\n  - d: 2\n    e: []\n"},
		{`[[1,2],[{"x":["z"]}]]`, "- - 1\n  - 2\n- - x:\n    - z\n"},
	} {
		if got := string(appendYAML(nil, raw(c.json))); got != c.yaml {
			t.Errorf("%s is\n%swant\n%s", c.json, got, c.yaml)
		}
	}
	built := []fields{{"group": "g", "kinds": []string{"A", "B"}}}
	if got, want := string(appendYAML(nil, built)), "- group: g\n  kinds:\n  - A\n  - B\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Every value survives encoding and decoding.
func FuzzYAML(f *testing.F) {
	for _, seed := range []string{
		`"0x1"`, `"1e3"`, `"1_000"`, `"~"`, `"- a"`, `"a: b"`, `"<<"`, `"=": 1`, `"\t"`, `" a "`, `"\u0085\u00a0\ufeff\uffff"`, `"1:30"`,
		`"2026-01-02"`, `".inf"`, `"NaN"`, `"y"`, `{"true":1,"":2,"null":[null]}`, `[1e30, 0.1, -0.0, 1e-7, 9007199254740993]`, `"!x"`, `"&a"`, `"*a"`, `"a#b"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		var want any
		if utiljson.Unmarshal([]byte(data), &want) != nil || !json.Valid([]byte(data)) {
			t.Skip()
		}
		// 1.0 is 1 in both.
		if err := utiljson.Unmarshal(appendJSON(nil, want), &want); err != nil {
			t.Fatal(err)
		}
		text := appendYAML(nil, raw(data))
		back, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var got any
		if err := utiljson.Unmarshal(back, &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%q became %q, which is %#v and not %#v", data, text, got, want)
		}
	})
}
