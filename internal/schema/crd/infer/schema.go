package infer

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A builder builds the schema of a version from its evidence.
type builder struct {
	minimum int
	version string
	notes   []Note
}

func (b *builder) note(at path, format string, args ...any) {
	b.notes = append(b.notes, Note{Version: b.version, Path: at.String(), Text: fmt.Sprintf(format, args...)})
}

// A path leads to a place in a schema, as anykind crd diff writes it: spec.items[].name, spec.map[*].
type path string

func (p path) String() string      { return string(p) }
func (p path) at(name string) path { return path(strings.TrimPrefix(string(p)+"."+name, ".")) }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// enough reports whether a place has enough samples for a rule.
func (b *builder) enough(p *place) bool { return p.samples >= b.minimum }

// schema is the schema of a place. A name is that of the field, or of the list or map that it is in.
func (b *builder) schema(at path, name string, p *place) v1.JSONSchemaProps {
	s := v1.JSONSchemaProps{}
	kinds := p.kinds()
	switch {
	case len(kinds) == 0:
		b.note(at, "the samples have only null here: any value is accepted")
		s = anything()
	case len(kinds) == 2 && kinds[0] == ofInteger && kinds[1] == ofString:
		s = intOrString(p.text.is(quantity))
	case len(kinds) > 1:
		b.note(at, "the samples have %s here: any value is accepted", listed(kinds))
		s = anything()
	case kinds[0] == ofString:
		s = b.text(at, name, p)
	case kinds[0] == ofArray:
		s = b.array(at, name, p)
	case kinds[0] == ofObject:
		s = b.object(at, name, p)
	default:
		s.Type = string(kinds[0])
	}
	s.Nullable = p.nulls > 0
	return s
}

func anything() v1.JSONSchemaProps { return v1.JSONSchemaProps{XPreserveUnknownFields: new(true)} }

// intOrString returns the schema of a quantity, or of a number or a name.
func intOrString(isQuantity bool) v1.JSONSchemaProps {
	s := v1.JSONSchemaProps{XIntOrString: true}
	if isQuantity {
		s.AnyOf = []v1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
		s.Pattern = quantityPattern
	}
	return s
}

// listed are kinds in a sentence.
func listed(all []kind) string {
	var words []string
	for _, k := range all {
		words = append(words, string(k))
	}
	return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}

func (b *builder) text(at path, name string, p *place) v1.JSONSchemaProps {
	t := &p.text
	s := v1.JSONSchemaProps{Type: string(ofString)}
	if s.Format = t.formatOf(name, b.enough(p)); s.Format != "" {
		return s
	}
	if t.isQuantity() {
		return intOrString(true)
	}
	if p.nulls > 0 {
		return s // an enum would have to have null
	}
	values := t.enumOf(name)
	switch {
	case values != nil && b.enough(p):
		for _, v := range values {
			s.Enum = append(s.Enum, asJSON(v))
		}
	default:
		if values = t.examplesOf(name); values != nil {
			b.notes = append(b.notes, Note{Version: b.version, Path: at.String(), Text: "an enum? The samples have " + strings.Join(values, ", "), Hint: true})
		}
	}
	return s
}

func asJSON(v any) v1.JSON {
	raw, _ := json.Marshal(v) // of a string or a number
	return v1.JSON{Raw: raw}
}

func (b *builder) array(at path, name string, p *place) v1.JSONSchemaProps {
	s := v1.JSONSchemaProps{Type: string(ofArray)}
	l := &p.list
	if l.each().seen == 0 {
		b.note(at, "the lists of the samples are empty: any items are accepted")
		items := anything()
		s.Items = &v1.JSONSchemaPropsOrArray{Schema: &items}
		return s
	}
	var items v1.JSONSchemaProps
	if conditionsOf(name, l.each()) {
		items = b.condition(at+"[]", l.each())
	} else {
		items = b.schema(at+"[]", name, l.each())
	}
	s.Items = &v1.JSONSchemaPropsOrArray{Schema: &items}
	switch key := b.keyOf(name, l, &items); {
	case key != "":
		s.XListType = new("map")
		s.XListMapKeys = []string{key}
		if !slices.Contains(items.Required, key) {
			items.Required = append(items.Required, key)
			slices.Sort(items.Required)
		}
	case len(items.Enum) > 0 && !l.repeats && l.samples >= b.minimum:
		s.XListType = new("set")
	}
	return s
}

// keys are the usual names of key fields in lists, the best first.
func keys() []string { return []string{"name", "type", "key", "id"} }

// references are the names of lists that refer to other objects.
var references = regexp.MustCompile(`([rR]efs?|[rR]eferences?)$`)

// keyOf returns the key field of the items of a list, or "".
func (b *builder) keyOf(name string, l *list, items *v1.JSONSchemaProps) string {
	if items.Type != string(ofObject) || items.Nullable || l.several == 0 || items.Properties == nil {
		return ""
	}
	known := conditionsOf(name, l.each())
	if references.MatchString(name) {
		return "" // the names refer to other objects, of possibly different kinds
	}
	for _, key := range keys() {
		k := l.each().object.byName[key]
		if k == nil || k.seen < l.each().object.seen || !k.is(ofString) || k.nulls > 0 || l.repeated[key] {
			continue
		}
		// One list may be enough: names are meant to be unique.
		if key == "name" && l.each().object.seen >= b.minimum || known && key == "type" || l.samples >= b.minimum {
			return key
		}
	}
	return ""
}

func (b *builder) object(at path, name string, p *place) v1.JSONSchemaProps {
	f := &p.object
	s := v1.JSONSchemaProps{Type: string(ofObject)}
	if strings.HasSuffix(string(at), "]") {
		name = "" // the name of the list or map around it
	}
	switch {
	case f.isMap(name):
		values := f.together()
		below := b.schema(at+"[*]", name, values)
		if quantities := f.quantities(values); quantities {
			below = intOrString(true)
			below.Nullable = values.nulls > 0
		}
		s.AdditionalProperties = &v1.JSONSchemaPropsOrBool{Allows: true, Schema: &below}
		return s
	case f.isResource():
		s.XEmbeddedResource = true
		s.XPreserveUnknownFields = new(true)
		return s
	case f.isSelector():
		return selector()
	case len(f.byName) == 0:
		return s
	}
	s.Properties = map[string]v1.JSONSchemaProps{}
	for _, field := range sorted(f.byName) {
		below := f.byName[field]
		s.Properties[field] = b.schema(at.at(field), field, below)
		if below.seen == f.seen && b.enough(p) && telling(s.Properties[field]) {
			s.Required = append(s.Required, field)
		}
	}
	return s
}

// telling reports whether a field of all samples may be required. Most programs omit empty, false and
// 0 values and accept their absence: samples have such fields by chance.
func telling(s v1.JSONSchemaProps) bool {
	return s.Type == string(ofString) || s.Type == string(ofObject) && s.AdditionalProperties == nil
}

// mapNames are the names of fields that are maps of strings all over Kubernetes.
var mapNames = regexp.MustCompile(`^(labels|annotations|matchLabels|nodeSelector|data|stringData|binaryData|limits|requests|selector|headers|tags|parameters|vars|variables|env|environment|attributes|values|[a-z]\w*(Labels|Annotations|Selector))$`)

// fieldName matches field names by the API conventions.
var fieldName = regexp.MustCompile(`^\$?[a-z_][A-Za-z0-9_]*$`)

// isMap reports whether keys are data: the fields have no names as fields have, or there are many
// that vary from object to object, and all have values of the same shape.
func (f *fields) isMap(name string) bool {
	if f.values != nil {
		return true
	}
	if len(f.byName) == 0 {
		return false
	}
	odd := 0
	everywhere := 0
	for key, p := range f.byName {
		if !fieldName.MatchString(key) {
			odd++
		}
		if p.seen*2 > f.seen {
			everywhere++
		}
	}
	values := f.together()
	one := len(values.kinds()) <= 1
	scalars := one && len(values.kinds()) == 1 && !values.is(ofObject) && !values.is(ofArray)
	switch {
	case mapNames.MatchString(name) && (scalars || f.quantities(values)):
		return true
	case !one && !f.quantities(values):
		return odd*2 > len(f.byName) && odd > 1 // with any values
	case odd > 0:
		return scalars || f.alike()
	}
	// Names that fields could have: are they data?
	const many = 5
	return len(f.byName) >= many && f.seen >= many && everywhere == 0 && f.alike() && len(f.byName) > 2*f.most
}

// alike reports whether the values of all fields are similar: scalars of one type, or objects with
// mostly common fields.
func (f *fields) alike() bool {
	var union map[string]int
	n := 0
	for _, p := range f.byName {
		fields := p.object.byName
		if p.is(ofArray) {
			fields = p.list.each().object.byName
		}
		if len(fields) == 0 {
			continue
		}
		if union == nil {
			union = map[string]int{}
		}
		n++
		for name := range fields {
			union[name]++
		}
	}
	if union == nil {
		return true
	}
	common := 0
	for _, count := range union {
		if count == n {
			common++
		}
	}
	return common*3 >= len(union) && common > 0
}

// quantities reports whether all values are quantities, as of resources of Kubernetes.
func (f *fields) quantities(values *place) bool {
	if values.booleans+values.numbers+values.list.seen+values.object.seen > 0 || values.text.seen > 0 && !values.text.is(quantity) {
		return false
	}
	for _, key := range []string{"cpu", "memory", "storage", "ephemeral-storage"} {
		if f.byName[key] != nil {
			return true
		}
	}
	return values.text.seen > 0 && values.text.isQuantity()
}

// isResource reports whether all objects are whole objects of Kubernetes.
func (f *fields) isResource() bool {
	for _, name := range []string{"apiVersion", "kind"} {
		p := f.byName[name]
		if p == nil || p.seen < f.seen || p.nulls > 0 || !p.is(ofString) || p.text.overflowed {
			return false
		}
		for value := range p.text.values {
			if !apiVersions.MatchString(value) && (name == "apiVersion" || !constants.MatchString(value)) {
				return false
			}
		}
	}
	meta := f.byName["metadata"]
	if meta == nil || meta.seen < f.seen || meta.nulls > 0 || !meta.is(ofObject) {
		return false
	}
	for name, p := range meta.object.byName {
		texts := p.is(ofString) && !p.text.overflowed && p.text.values[""] == 0 && (p.text.is(word) || p.text.is(short))
		maps := (name == "labels" || name == "annotations") && p.is(ofObject) && p.object.together().is(ofString)
		if p.nulls > 0 || !maps && (name != "name" && name != "namespace" && name != "generateName" || !texts) {
			return false
		}
	}
	return true
}

// apiVersions are a group and a version, or a version.
var apiVersions = regexp.MustCompile(`^(?:[a-z0-9.-]+/)?v[0-9][a-z0-9]*$`)
