package generate

import (
	"bytes"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// body sends slightly malformed bodies.
func body(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("patch") })
	o := g.object(r)
	g.post(r, o)
	for range 3 {
		mediaType, document := g.oddBody(r, o)
		s := wire.Step{Kind: "body", Resource: r.Label(), Method: "PUT", Path: pathOf(r) + g.writeQuery(), Header: typed(mediaType), Body: document}
		switch g.IntN(5) {
		case 0:
			s.Method, s.Path = "POST", r.Path(namespaceOf(r), "")+g.writeQuery()
		case 1:
			s.Method, s.Path = "DELETE", pathOf(r)
		case 2:
			s.Method = "PATCH"
			s.Header = typed(one(g, mergePatch, strategicPatch, jsonPatch, applyPatch))
			if s.Header[0].Value == applyPatch {
				s.Path = pathOf(r) + "?fieldManager=one&force=true"
			}
		}
		s.Kind = "body " + strings.ToLower(s.Method)
		g.add(s)
	}
}

// oddBody returns a body and its declared media type.
func (g *G) oddBody(r *Resource, o map[string]any) (string, []byte) {
	document := encode(o)
	field := func(text string) []byte { // at the beginning of the object
		return append([]byte("{"+text+","), document[1:]...)
	}
	switch g.IntN(14) {
	case 0:
		return "application/json", g.damage(document)
	case 1:
		return "application/json", []byte(one(g, "", " ", "null", "[]", "{}", "1", `"x"`, "true", "{", "}", "{}{}", "{} {}", "\ufeff{}", "nul", "[1,]", `{"a":1,}`, "{'a':1}", "{a:1}", "/* */{}", "NaN", `{"a":NaN}`, `{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":"\x"}`, "{\"a\":\"\n\"}", `{"a":"\ud800"}`, `{"a":"\u0000"}`))
	case 2:
		return "application/json", field(one(g, `"kind":"Other"`, `"metadata":{}`, `"metadata":{"name":"x"}`, `"apiVersion":"v9"`, `"spec":{}`, `"zzz":1,"zzz":2`, `"data":{"a":"b","a":"c"}`, `"spec":{"color":"red","color":"blue"}`))
	case 3:
		depth := one(g, 20, 200, 1000, 9000)
		open, end := one(g, "[", `{"a":`), "]"
		if open != "[" {
			end = "}"
		}
		value := strings.Repeat(open, depth) + "1" + strings.Repeat(end, depth)
		return "application/json", field(`"` + one(g, "zzz", "free", "data", "whatever") + `":` + value)
	case 4:
		number := one(g, "-0", "-0.0", "1e400", "1E5", "1e5", "1.0", "0.1e1", "9007199254740993", "18446744073709551616", "-9223372036854775809", "1e-400", "123456789012345678901234567890.5", "2147483648", "1.5")
		return "application/json", field(one(g, `"n":`+number, `"spec":{"color":"red","replicas":`+number+`}`, `"spec":{"color":"red","ratio":`+number+`}`, `"spec":{"color":"red","anything":{"x":`+number+`}}`, `"count":`+number, `"spec":{"color":"red","big":`+number+`}`, `"metadata":{"name":"`+wire.Scope+`","generation":`+number+`}`))
	case 5:
		return "application/json", bytes.Replace(document, []byte(`"`+wire.Scope), []byte(one(g, "\"\xff\xfe", "\"\xc3", "\"\xed\xa0\x80", "\"\xf4\x90\x80\x80")+wire.Scope), 1+g.IntN(2))
	case 6:
		return "application/yaml", []byte(g.oddYAML(r))
	case 7:
		return "application/yaml", g.damage(document)
	case 8:
		return "application/json", []byte(strings.NewReplacer(`"metadata"`, one(g, `"Metadata"`, `"METADATA"`, `"metadata "`), `"kind"`, one(g, `"kind"`, `"Kind"`)).Replace(string(document)))
	case 9:
		other := clone(o).(map[string]any)
		other[one(g, "kind", "apiVersion", "metadata", "spec", "data", "type")] = one[any](g, "", "X", nil, 1, map[string]any{}, []any{}, "v1", "a/b/c", "/", "v1/", true)
		return "application/json", encode(other)
	case 10:
		return "application/json", field(`"data":{"big":"` + strings.Repeat("x", one(g, 1<<20, 1<<20+1<<19, 3<<20)) + `"}`)
	case 11:
		return "application/json", []byte(`{"kind":"List","apiVersion":"v1","items":[` + string(document) + `]}`)
	case 12:
		return "application/json", append([]byte(strings.Repeat(" ", g.IntN(3000))), document...)
	}
	m := clone(o).(map[string]any)
	at(m, "metadata")[one(g, "name", "labels", "annotations", "finalizers", "generation", "creationTimestamp", "ownerReferences", "uid", "bogus")] = g.anything(5)
	return "application/json", encode(m)
}

// oddYAML returns an object in unusual YAML.
func (g *G) oddYAML(r *Resource) string {
	head := "apiVersion: " + r.APIVersion() + "\nkind: " + r.Kind + "\n"
	m := "metadata: {name: " + wire.Scope + "}\n"
	return one(g,
		head+"metadata: &m {name: "+wire.Scope+"}\nextra: *m\n",
		head+m+"---\n"+head+m,
		"---\n"+head+m+"...\n",
		"%YAML 1.1\n---\n"+head+m,
		head+m+"data: {a: yes, b: on, c: 0x1F, d: 1_000, e: ~, f: 012, g: .inf, h: 2020-01-02}\n",
		head+m+"data: {a: !!str 1, b: !!binary aGVsbG8=, c: !bogus x}\n",
		head+m+"data: {<<: {a: b}, c: d}\n",
		head+m+"data: {1: a, true: b, null: c, 1.5: d}\n",
		head+m+"data:\n  a: |\n    x\n    y\n  b: >-\n    x\n    y\n",
		head+m+"data: {a: b, a: c}\n",
		head+m+"data: *unknown\n",
		head+m+"\tdata: x\n",
		head+m+"data: {a: \"\\u00e9\", b: '\\n'}\n",
		head+m+"a: &a [x]\nb: &b [*a,*a]\nc: [*b,*b]\n",
		head+m+"a: &a [*a]\n",
		"- "+head,
		"# nothing\n",
		"",
		head+m+"data: {a: 123456789012345678901234567890, b: 1e3, c: -0.0, d: 0o17}\n",
		strings.ReplaceAll(head+m, "\n", "\r\n"),
		"{\"apiVersion\": \""+r.APIVersion()+"\", kind: "+r.Kind+", metadata: {name: "+wire.Scope+"}}",
	)
}
