package rest_test

import (
	"fmt"
	"strings"
	"testing"
)

// Values that no schema foresees, as JSON and as YAML, with the answers of kube-apiserver.
func TestHostileValues(t *testing.T) {
	s := newServer(t)
	const json, yaml = "application/json", "application/yaml"
	many := func(n int, each string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(each, "$", fmt.Sprint(i))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	for i, tt := range []struct {
		name, contentType, spec string
		code                    int
		want                    string
	}{
		{"a number that is no float", json, `{"n":1e400}`, 400, "cannot unmarshal number 1e400"},
		{"minus nothing", json, `{"n":-0}`, 201, `"spec":{"n":0}`},
		{"one, as a float", json, `{"n":1.0}`, 201, `"spec":{"n":1}`},
		{"a hundred, as a float", json, `{"n":1e2}`, 201, `"spec":{"n":100}`},
		{"no field but false, in YAML", yaml, `{n: 1}`, 201, `"spec":{}`},
		{"one, as a float in YAML", yaml, `{"n": 1.0}`, 201, `"spec":{"n":1}`},
		{"a half", json, `{"n":1.5}`, 422, `spec.n in body must be of type integer`},
		{"the largest integer", json, `{"n":9223372036854775807}`, 201, `"spec":{"n":9223372036854775807}`},
		{"one more", json, `{"n":9223372036854775808}`, 422, `spec.n`},
		{"no JSON", json, `{"n":01}`, 400, ""},
		{"not a number", json, `{"n":NaN}`, 400, ""},
		{"not a number in YAML", yaml, `{"n": .nan}`, 400, ""},
		{"no UTF-8", json, "{\"a\":\"\xff\"}", 201, "\"a\":\"\ufffd\""},
		{"half of a character", json, `{"a":"\ud800"}`, 201, "\"a\":\"\ufffd\""},
		{"no UTF-8 in YAML", yaml, "{a: \"\xff\"}", 400, ""},
		{"a control character", json, "{\"a\":\"\x00\"}", 400, ""},
		{"a control character that is quoted", json, `{"a":"\u0000"}`, 201, `"a":"\u0000"`},
		{"one field many times", json, many(20_000, `"a":"x"`), 201, `"spec":{"a":"x"}`},
		{"many unknown fields", json, many(20_000, `"k$":1`), 201, `"spec":{}`},
		{"a long key", json, `{"` + strings.Repeat("x", 1_000_000) + `":1}`, 201, `"spec":{}`},
		{"a long number", json, `{"n":` + strings.Repeat("1", 1_000_000) + `}`, 400, ""},
	} {
		name := fmt.Sprintf("x%d", i)
		body := named(name, `,"spec":`+tt.spec)
		if tt.contentType == yaml {
			body = fmt.Sprintf("apiVersion: test.example.com/v1\nkind: Lead\nmetadata: {name: %s}\nspec: %s\n", name, tt.spec)
		}
		a := s.do("POST", leads, tt.contentType, body)
		if a.code != tt.code || !strings.Contains(a.body, tt.want) {
			t.Errorf("%s: %d %.300s\nwant %d %s", tt.name, a.code, a.body, tt.code, tt.want)
		}
	}
}
