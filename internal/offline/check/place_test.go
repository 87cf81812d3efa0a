package check

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A field of a built object is at its line in the source only if the build left it unchanged.
func TestCounterpart(t *testing.T) {
	const source = `
metadata: {name: web}
spec:
  replicas: 1
  port: 0x50
  containers:
  - name: web
    image: a
  - name: proxy
    image: b
  ports:
  - port: 80
  - port: 81
  empty: {}
`
	for name, tt := range map[string]struct {
		built, field string
		line         int // 0 for none
	}{
		"an equal value":                   {"spec: {replicas: 1}", "spec.replicas", 4},
		"an equal value in other notation": {"spec: {port: 80}", "spec.port", 5},
		"another value":                    {"spec: {replicas: -1}", "spec.replicas", 0},
		"another type":                     {"spec: {replicas: \"1\"}", "spec.replicas", 0},
		"an added field":                   {"spec: {added: 1}", "spec.added", 0},
		"a removed field":                  {"spec: {port: 80}", "spec.replicas", 0},
		"a missing field":                  {"spec: {}", "spec.selector", 3},
		"a missing field of a new parent":  {"spec: {template: {}}", "spec.template.spec", 0},
		"a missing field of an object":     {"spec: {empty: {}}", "spec.empty.value", 14},
		"an object with a changed field":   {"spec: {replicas: -1}", "spec", 0},
		"another name":                     {"metadata: {name: prod-web}", "metadata.name", 0},
		"a moved element":                  {"spec: {containers: [{name: new, image: b}, {name: proxy, image: b}]}", "spec.containers[1].image", 10},
		"a new element":                    {"spec: {containers: [{name: new, image: b}, {name: proxy, image: b}]}", "spec.containers[0].image", 0},
		"an element twice":                 {"spec: {containers: [{name: web}, {name: web}]}", "spec.containers[1].name", 0},
		"a changed element":                {"spec: {containers: [{name: web, image: c}]}", "spec.containers[0].image", 0},
		"a field of a changed element":     {"spec: {containers: [{name: web, image: a, tty: true}]}", "spec.containers[0].image", 8},
		"an element without a name":        {"spec: {ports: [{port: 81}]}", "spec.ports[0].port", 13},
		"a new element without a name":     {"spec: {ports: [{port: 82}, {port: 81}]}", "spec.ports[0].port", 0},
		"equal elements":                   {"spec: {ports: [{port: 81}, {port: 81}]}", "spec.ports[1].port", 0},
		"another kind of value":            {"spec: {containers: {a: 1}}", "spec.containers[0].image", 0},
	} {
		t.Run(name, func(t *testing.T) {
			line := 0
			if place := counterpart(parse(t, tt.built), parse(t, source), tt.field); place != nil {
				line = place.Line
			}
			if line != tt.line {
				t.Errorf("line %d, want %d", line, tt.line)
			}
		})
	}
}

func parse(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	return document.Content[0]
}

// The object in an origin has the name of the built object, or the name without a prefix and a suffix.
func TestSourceOf(t *testing.T) {
	for name, tt := range map[string]struct {
		source, built []string
		want          map[string]string
	}{
		"the same names":        {[]string{"web", "web-2"}, []string{"web", "web-2"}, map[string]string{"web": "web", "web-2": "web-2"}},
		"a prefix":              {[]string{"web", "web-2"}, []string{"a-web", "a-web-2"}, map[string]string{"a-web": "web", "a-web-2": "web-2"}},
		"a suffix":              {[]string{"web", "web-2"}, []string{"web-a", "web-2-a"}, map[string]string{"web-a": "web", "web-2-a": "web-2"}},
		"a prefix of the names": {[]string{"web", "a-web"}, []string{"a-web", "a-a-web"}, map[string]string{"a-web": "web", "a-a-web": "a-web"}},
		"two prefixes":          {[]string{"web"}, []string{"a-web", "b-web"}, map[string]string{"a-web": "web", "b-web": "web"}},
		"a removed object":      {[]string{"web", "other"}, []string{"web"}, map[string]string{"web": "web"}},
		"several objects":       {[]string{"web", "web-2"}, []string{"web-2"}, map[string]string{"web-2": ""}},
		"another name":          {[]string{"web"}, []string{"shop"}, map[string]string{"shop": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			text := ""
			for _, name := range tt.source {
				text += "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\n"
			}
			var out []string
			var sources []Document
			for _, name := range tt.built {
				out = append(out, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  annotations:\n    config.kubernetes.io/origin: |\n      path: a.yaml\n  name: "+name+"\n")
			}
			source := &reader{visit: func(d *Document) error { sources = append(sources, *d); return nil }}
			if err := source.split("a.yaml", []byte(text), false); err != nil {
				t.Fatal(err)
			}
			k := &kustomizeOutput{file: "kustomization.yaml", text: strings.Join(out, "---\n"), sources: map[string][]Document{"a.yaml": sources}}
			var all []*Document
			r := &reader{visit: func(d *Document) error { one := *d; all = append(all, &one); return nil }}
			if err := r.splitOutput(k); err != nil {
				t.Fatal(err)
			}
			for _, d := range all {
				own, found := d.result().Name, ""
				if source := k.sourceOf(d); source != nil {
					found = source.result().Name
				}
				if found != tt.want[own] {
					t.Errorf("%s is %q in the origin, want %q", own, found, tt.want[own])
				}
			}
		})
	}
}

// A line of the output of Helm is at a line of the template only if the texts prove it.
func TestLineIn(t *testing.T) {
	const output = "# Source: shop/templates/a.yaml\nkind: A\nspec:\n  port: 1\n  list:\n  - x: 1\n  - x: 1\n"
	for name, tt := range map[string]struct {
		template, line string
		want           int
	}{
		"a line of the template":       {"{{ if .a }}\nkind: A\nspec:\n  port: 1\n{{ end }}\n", "  port: 1", 4},
		"a line with an action":        {"kind: A\nspec:\n  port: {{ .port }}\n", "  port: 1", 0},
		"a line twice in the template": {"kind: A\n{{ if .a }}\n  port: 1\n{{ else }}\n  port: 1\n{{ end }}\n", "  port: 1", 0},
		"a line twice in the output":   {"kind: A\nlist:\n{{ range .a }}\n  - x: 1\n{{ end }}\n", "  - x: 1", 0},
		"another indentation":          {"kind: A\nport: 1\n", "  port: 1", 0},
		"a comment of the template":    {"kind: A\n{{- /*\n  port: 1\n*/ -}}\n{{ .spec }}\n", "  port: 1", 0},
		"behind a comment":             {"{{/* a\nb */}}\nkind: A\n  port: 1\n", "  port: 1", 4},
		"a document of another kind":   {"kind: A\n{{ .spec }}\n---\nkind: B\nspec:\n  port: 1\n", "  port: 1", 0},
		"the second document":          {"kind: B\n---\nkind: A\nspec:\n  port: 1\n", "  port: 1", 5},
		"a kind with an action":        {"kind: {{ .kind }}\nspec:\n  port: 1\n", "  port: 1", 0},
		"the line of the kind":         {"kind: A\nspec:\n", "kind: A", 1},
		"an empty template":            {"", "  port: 1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			at := strings.Count(output[:strings.Index(output, tt.line)], "\n")
			if got := lineIn(tt.template, output, at, "A"); got != tt.want {
				t.Errorf("line %d, want %d", got, tt.want)
			}
		})
	}
}

// The line of an error of the YAML library may be behind the text.
func TestLineBehindOutput(t *testing.T) {
	if got := lineIn("a: [\n", "a: [", 1, ""); got != 0 {
		t.Errorf("line %d, want 0", got)
	}
}
