package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

type object = map[string]any

// documents are the OpenAPI documents.
type documents struct {
	v3    map[string]object // by name, such as apis/apps/v1
	v2    object
	names []string          // of all listed documents
	sets  map[string]string // parameter sets of operations
}

func (s Server) documents(groups []group) (*documents, error) {
	var index struct{ Paths map[string]any }
	if err := s.get("/openapi/v3", plain, &index); err != nil {
		return nil, err
	}
	d := &documents{v3: map[string]object{}, sets: map[string]string{}}
	want := map[string]bool{"version": true, "api": true, "apis": true}
	for _, g := range groups {
		want[strings.TrimPrefix("/apis/"+g.name, "/")] = true
		for _, v := range g.versions {
			want[g.root(v)[1:]] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(index.Paths)) {
		if strings.HasPrefix(name, "apis/") && !want[name] {
			continue
		}
		d.names = append(d.names, name)
		if !want[name] {
			continue
		}
		var doc object
		if err := s.get("/openapi/v3/"+name, plain, &doc); err != nil {
			return nil, err
		}
		d.v3[name] = doc
	}
	return d, s.get("/openapi/v2", plain, &d.v2)
}

// in returns the object at a path of fields.
func in(o object, path ...string) object {
	for _, name := range path {
		o, _ = o[name].(object)
	}
	return o
}

// schemas returns the schemas of a document.
func schemas(doc object) object { return in(doc, "components", "schemas") }

// encode returns the JSON of a value, with sorted fields.
func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it came from JSON
	}
	return string(data)
}

// short returns the short name of a schema.
func short(name string) string {
	for _, prefix := range [][2]string{
		{"io.k8s.api.", ""}, {"io.k8s.apimachinery.pkg.apis.", ""}, {"io.k8s.apimachinery.pkg.", ""},
		{"io.k8s.apiextensions-apiserver.pkg.apis.", ""}, {"io.k8s.kube-aggregator.pkg.apis.", ""},
	} {
		if rest, ok := strings.CutPrefix(name, prefix[0]); ok {
			return prefix[1] + rest
		}
	}
	return name
}

// kindsOf returns the kinds in the extension of a schema.
func kindsOf(schema any) (out []string) {
	s, _ := schema.(object)
	list, _ := s["x-kubernetes-group-version-kind"].([]any)
	for _, entry := range list {
		e := entry.(object)
		out = append(out, fmt.Sprintf("%v/%v %v", e["group"], e["version"], e["kind"]))
	}
	return out
}

// model returns the name of the schema of a kind, or "".
func (d *documents) model(k *kind) string {
	for name, s := range schemas(d.v3[k.root()[1:]]) {
		if kinds := kindsOf(s); len(kinds) == 1 && kinds[0] == k.group.name+"/"+k.version+" "+k.name {
			return name
		}
	}
	return ""
}

// labels returns the field paths that may be field selectors.
func (d *documents) labels(k *kind) []string {
	all := schemas(d.v3[k.root()[1:]])
	var out []string
	var walk func(name, prefix string, deep int)
	walk = func(name, prefix string, deep int) {
		for field, property := range in(all, name, "properties") {
			schema := property.(object)
			if typ, _ := schema["type"].(string); typ == "string" || typ == "boolean" || typ == "integer" {
				out = append(out, prefix+field)
			}
			if ref := reference(schema); ref != "" && deep > 0 {
				walk(ref, prefix+field+".", deep-1)
			}
		}
	}
	walk(d.model(k), "", 1)
	return out
}

// reference returns the name of the schema that another one refers to, alone or with its own
// description or default.
func reference(schema object) string {
	if all, ok := schema["allOf"].([]any); ok && len(all) == 1 {
		schema, _ = all[0].(object)
	}
	ref, _ := schema["$ref"].(string)
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// types returns the schemas of the v3 documents. Each has a hash of its content without
// descriptions, a hash of its v2 form, and the marks that Go types lack.
func (d *documents) types() Recording {
	of := map[string]*Block{}
	for document, doc := range d.v3 {
		for name, s := range schemas(doc) {
			b := typeBlock(name, s.(object))
			if kinds := kindsOf(s); everywhere(name) && len(kinds) > 0 {
				one := &Block{Subject: b.Subject + " in " + document, Facts: []string{"kinds " + mark(strings.Join(kinds, " "), 8)}}
				of[one.Subject] = one
			}
			if v2, ok := in(d.v2, "definitions")[name]; ok {
				b.Facts[0] += " " + mark(encode(bare(v2)), 6)
			}
			if other := of[b.Subject]; other != nil && other.Facts[0] != b.Facts[0] {
				b.Subject += " in " + document
			}
			of[b.Subject] = b
		}
	}
	return slices.SortedStableFunc(maps.Values(of), func(a, b *Block) int { return strings.Compare(a.Subject, b.Subject) })
}

// everywhere reports whether a schema lists its kind in each group whose document has it.
func everywhere(name string) bool {
	return strings.HasPrefix(name, "io.k8s.apimachinery.") && (strings.HasSuffix(name, ".DeleteOptions") || strings.HasSuffix(name, ".WatchEvent"))
}

func typeBlock(name string, s object) *Block {
	whole := maps.Clone(s)
	if everywhere(name) {
		delete(whole, "x-kubernetes-group-version-kind")
	}
	b := &Block{Subject: short(name), Facts: []string{"is " + mark(encode(bare(whole)), 6)}}
	if required, ok := s["required"].([]any); ok {
		b.Facts = append(b.Facts, "required "+strings.Trim(fmt.Sprint(required), "[]"))
	}
	if words := marks(s); words != "" {
		b.Facts = append(b.Facts, "itself"+words)
	}
	properties := in(s, "properties")
	for _, field := range slices.Sorted(maps.Keys(properties)) {
		if words := marks(properties[field].(object)); words != "" {
			b.Facts = append(b.Facts, "."+field+words)
		}
	}
	return b
}

// bare returns a schema without descriptions.
func bare(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for name, value := range v {
			if _, text := value.(string); !text || name != "description" {
				out[name] = bare(value)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = bare(v[i])
		}
		return out
	}
	return v
}

// marks returns words for the properties of a schema that Go field types lack.
func marks(s object) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s)) {
		value := s[name]
		switch name {
		case "x-kubernetes-list-map-keys", "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy", "x-kubernetes-group-version-kind":
		case "x-kubernetes-list-type":
			fmt.Fprintf(&out, " list=%v", value)
			if keys, ok := s["x-kubernetes-list-map-keys"].([]any); ok {
				fmt.Fprintf(&out, "%v", keys)
			}
		case "x-kubernetes-map-type":
			fmt.Fprintf(&out, " map=%v", value)
		case "enum":
			fmt.Fprintf(&out, " enum=%v", value)
		case "default":
			if text := encode(value); text != `""` && text != "{}" && text != "0" && text != "false" {
				fmt.Fprintf(&out, " default=%s", text)
			}
		case "items":
			if words := marks(value.(object)); words != "" {
				fmt.Fprintf(&out, " items(%s)", words[1:])
			}
		default:
			if strings.HasPrefix(name, "x-") {
				fmt.Fprintf(&out, " %s=%s", name, encode(value))
			}
		}
	}
	return out.String()
}
