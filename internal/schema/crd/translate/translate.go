// Package translate translates a JSON schema, for example one generated from Go types, into the
// structural schema of a kind.
//
// It reads drafts 4 to 2020-12, and the schemas of OpenAPI. References are resolved. Alternatives are
// merged into one type, with their remaining constraints beside it. A constraint without a structural
// form becomes a note with its place, and the result accepts more, never less, than the JSON schema;
// except that fields without a name are dropped, as in all custom resources. The package knows
// schemas. It does not know files, servers or objects.
package translate

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Note reports a lost constraint of a JSON schema and its place.
type Note struct{ Path, Text string }

// A Result is the schema of a type.
type Result struct {
	// Type is the name of the type, or "" if the document does not declare it.
	Type string
	// Schema is for whole objects of a kind. It does not describe apiVersion, kind and metadata.
	Schema *v1.JSONSchemaProps
	Notes  []Note
}

// Schema returns the schema of a kind from a JSON schema, or from one of its types. A type without
// spec, apiVersion and kind is the spec of the kind.
func Schema(document map[string]any, typ string) (*Result, error) {
	t := &translation{document: document, ignored: map[string]int{}}
	root, name, err := t.root(typ)
	if err != nil {
		return nil, err
	}
	whole := t.schema("", root)
	if whole.Type != "object" {
		return nil, fmt.Errorf("type %s is %s; a kind needs an object", cmp.Or(name, "of the document"), cmp.Or(whole.Type, "anything"))
	}
	_, hasSpec := whole.Properties["spec"]
	_, hasKind := whole.Properties["kind"]
	_, hasVersion := whole.Properties["apiVersion"]
	if !hasSpec && !(hasKind && hasVersion) {
		for i := range t.notes {
			t.notes[i].Path = strings.TrimSuffix("spec."+t.notes[i].Path, ".")
		}
		whole = v1.JSONSchemaProps{Type: "object", Properties: map[string]v1.JSONSchemaProps{"spec": whole}}
	}
	bare(&whole)
	for _, keyword := range slices.Sorted(maps.Keys(t.ignored)) {
		t.notes = append(t.notes, Note{Text: fmt.Sprintf("%s is omitted, %s", keyword, times(t.ignored[keyword]))})
	}
	return &Result{Type: name, Schema: &whole, Notes: t.notes}, nil
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// bare removes the common fields of all kinds from a schema.
func bare(s *v1.JSONSchemaProps) {
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		delete(s.Properties, name)
	}
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool {
		return name == "apiVersion" || name == "kind" || name == "metadata" || name == "status"
	})
	if s.XPreserveUnknownFields != nil && len(s.Properties) > 0 {
		s.XPreserveUnknownFields = nil
	}
}

// A translation is at work on a document.
type translation struct {
	document map[string]any
	notes    []Note
	ignored  map[string]int // keywords without an effect on values
	within   []string       // references that are being followed
}

func (t *translation) note(path, format string, args ...any) {
	n := Note{path, fmt.Sprintf(format, args...)}
	if !slices.Contains(t.notes, n) {
		t.notes = append(t.notes, n)
	}
}

// types are where documents define types.
func (t *translation) types() map[string]any {
	all := map[string]any{}
	components, _ := t.document["components"].(map[string]any)
	for _, place := range []any{t.document["$defs"], t.document["definitions"], components["schemas"]} {
		defined, _ := place.(map[string]any)
		maps.Copy(all, defined)
	}
	return all
}

// root returns the root schema and the name of its type.
func (t *translation) root(typ string) (any, string, error) {
	types := t.types()
	names := slices.Sorted(maps.Keys(types))
	if typ != "" {
		if types[typ] == nil {
			return nil, "", fmt.Errorf("no type %s; the schema has %s", typ, cmp.Or(strings.Join(names, ", "), "none"))
		}
		return types[typ], typ, nil
	}
	if ref, ok := t.document["$ref"].(string); ok {
		return t.document, ref[strings.LastIndex(ref, "/")+1:], nil
	}
	if t.document["type"] != nil || t.document["properties"] != nil || t.document["allOf"] != nil || t.document["anyOf"] != nil || t.document["oneOf"] != nil {
		title, _ := t.document["title"].(string)
		return t.document, title, nil
	}
	switch len(names) {
	case 0:
		return nil, "", errors.New("not a JSON schema: type and $defs are missing")
	case 1:
		return types[names[0]], names[0], nil
	}
	return nil, "", fmt.Errorf("the schema has several types: choose one with --type: %s", strings.Join(names, ", "))
}

// refer follows a reference in the document.
func (t *translation) refer(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		id, _ := t.document["$id"].(string)
		if pointer, ok = strings.CutPrefix(ref, id+"#"); !ok || id == "" {
			return nil, errors.New("the reference is to another document")
		}
	}
	var at any = t.document
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if step == "" {
			continue
		}
		tree, _ := at.(map[string]any)
		if at = tree[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; at == nil {
			return nil, errors.New("the target of the reference is missing")
		}
	}
	return at, nil
}

// reference returns the schema of a reference, with the keywords beside it.
func (t *translation) reference(path, ref string, beside map[string]any) v1.JSONSchemaProps {
	name := ref[strings.LastIndex(ref, "/")+1:]
	target, err := t.refer(ref)
	if known, ok := ofGo(name, target); ok {
		return described(known, beside)
	}
	if slices.Contains(t.within, ref) {
		t.note(path, "%s is recursive: any value is accepted from here on", name)
		return described(anything(), beside)
	}
	if err != nil {
		t.note(path, "%s is not resolved: %v; any value is accepted", ref, err)
		return described(anything(), beside)
	}
	t.within = append(t.within, ref)
	defer func() { t.within = t.within[:len(t.within)-1] }()
	if len(beside) == 0 {
		return t.schema(path, target)
	}
	return t.merge(path, t.schema(path, target), t.schema(path, beside))
}

// described returns a schema with the description of another.
func described(s v1.JSONSchemaProps, beside map[string]any) v1.JSONSchemaProps {
	if text, ok := beside["description"].(string); ok {
		s.Description = text
	}
	return s
}

func anything() v1.JSONSchemaProps { return v1.JSONSchemaProps{XPreserveUnknownFields: new(true)} }

// ofGo returns the schemas of Kubernetes' types with their own JSON encoding. A generator that only
// reads Go fields finds capitalized ones, or none.
func ofGo(name string, target any) (v1.JSONSchemaProps, bool) {
	in, _ := target.(map[string]any)
	fields, _ := in["properties"].(map[string]any)
	for field := range fields {
		if field[:min(1, len(field))] != strings.ToUpper(field[:min(1, len(field))]) && name != "ObjectMeta" {
			return v1.JSONSchemaProps{}, false
		}
	}
	s, ok := map[string]v1.JSONSchemaProps{
		"IntOrString":  {XIntOrString: true},
		"Quantity":     {XIntOrString: true, AnyOf: []v1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}},
		"Duration":     {Type: "string"},
		"Time":         {Type: "string", Format: "date-time"},
		"MicroTime":    {Type: "string", Format: "date-time"},
		"RawExtension": {Type: "object", XPreserveUnknownFields: new(true)},
		"ObjectMeta":   {Type: "object"},
	}[name]
	return s, ok && in["type"] == "object" && (name != "ObjectMeta" || fields["generateName"] != nil)
}
