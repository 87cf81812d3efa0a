package conversion

import (
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/order"
)

// A Suggestion is a rule that may be between two schemas.
type Suggestion struct {
	// Rule is the rule in the form of its JSON.
	Rule map[string]any
	// Question says what the schemas do not decide; "" for a rule that follows from them.
	Question string
}

// Suggest returns rules for all fields that differ between two schemas. They compile, and lose nothing that
// a rule can keep. group is the group of annotations with fields that the other version does not have.
func Suggest(group string, hub, spoke *v1.JSONSchemaProps) []Suggestion {
	s := &suggester{group: group, hub: hub, spoke: spoke}
	s.differing(nil, hub, spoke)
	s.pair()
	return s.out
}

// A lone field is one that only one version has.
type lone struct {
	path   path
	schema *v1.JSONSchemaProps
	used   bool
}

type suggester struct {
	group      string
	hub, spoke *v1.JSONSchemaProps
	depth      int
	hubOnly    []*lone
	spokeOnly  []*lone
	out        []Suggestion
}

type params = map[string]any

func (s *suggester) add(strategy, question string, p params) {
	s.out = append(s.out, Suggestion{Rule: map[string]any{"strategy": strategy, strategies()[strategy].field: p}, Question: question})
}

// lossy adds a rule whose loss its author has to acknowledge.
func (s *suggester) lossy(strategy, question string, p params) {
	s.add(strategy, question, p)
	last := s.out[len(s.out)-1].Rule
	last["acknowledgeLossy"], last["reason"] = true, "TODO: "+question
}

// differing compares the fields of two objects.
func (s *suggester) differing(at path, x, y *v1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(x.Properties)) {
		if len(at) == 0 && s.depth == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		mine := x.Properties[name]
		here := append(slices.Clone(at), name)
		its, ok := y.Properties[name]
		if !ok {
			s.hubOnly = append(s.hubOnly, lonely(here, &mine)...)
			continue
		}
		s.same(here, &mine, &its)
	}
	for _, name := range slices.Sorted(maps.Keys(y.Properties)) {
		if _, ok := x.Properties[name]; !ok && (len(at) > 0 || s.depth > 0 || name != "apiVersion" && name != "kind" && name != "metadata") {
			its := y.Properties[name]
			s.spokeOnly = append(s.spokeOnly, lonely(append(slices.Clone(at), name), &its)...)
		}
	}
}

// lonely returns the leaves of a field that only one version has.
func lonely(at path, schema *v1.JSONSchemaProps) (out []*lone) {
	leaves(schema, at, func(p path, of *v1.JSONSchemaProps) { out = append(out, &lone{path: p, schema: of}) })
	return out
}

// same suggests a rule for a field of both versions.
func (s *suggester) same(at path, x, y *v1.JSONSchemaProps) {
	kx, ky := kindOf(x), kindOf(y)
	where := params{"hubPath": at.String(), "spokePath": at.String()}
	switch {
	case kx == fields && ky == fields:
		s.differing(at, x, y)
	case kx == text && ky == text && len(x.Enum) > 0 && len(y.Enum) > 0:
		s.values(at, x, y)
	case kx == list && ky == list && objects(x) && objects(y) && s.depth < maxDepth:
		if _, a := difference(x, y); !a {
			if _, b := difference(y, x); !b {
				return
			}
		}
		in := &suggester{group: s.group, hub: x.Items.Schema, spoke: y.Items.Schema, depth: s.depth + 1}
		in.differing(nil, in.hub, in.spoke)
		in.pair()
		rules, questions := []any{}, []string{}
		for _, r := range in.out {
			rules = append(rules, r.Rule)
			if r.Question != "" {
				questions = append(questions, r.Question)
			}
		}
		s.add("ForEach", strings.Join(questions, " "), params{"hubItemsPath": at.String(), "spokeItemsPath": at.String(), "rules": rules})
	case s.transform(where, x, y):
	case kx != ky:
		s.hubOnly = append(s.hubOnly, lonely(at, x)...)
		s.spokeOnly = append(s.spokeOnly, lonely(at, y)...)
	}
}

func objects(s *v1.JSONSchemaProps) bool {
	return s.Items != nil && s.Items.Schema != nil && kindOf(s.Items.Schema) == fields
}

// transform suggests a rule between two fields of different types, and reports whether there is one.
func (s *suggester) transform(where params, x, y *v1.JSONSchemaProps) bool {
	kx, ky := kindOf(x), kindOf(y)
	with := func(name string, value any) params {
		p := maps.Clone(where)
		p[name] = value
		return p
	}
	const order = "The order of the elements is lost: is that right?"
	switch {
	case kx == ky:
		return false
	case kx.scalar() && ky.scalar():
		if where["hubPath"] != where["spokePath"] {
			return false
		}
		s.add("TypeCoerce", "", params{"path": where["hubPath"]})
	case kx.scalar() && ky == fields && onlyKey(y, kx) != "":
		s.add("ScalarToObject", "", with("key", onlyKey(y, kx)))
	case kx == fields && ky.scalar() && onlyKey(x, ky) != "":
		s.add("ObjectToScalar", "", with("key", onlyKey(x, ky)))
	case kx == list && ky == fields && objects(x) && alike(x.Items.Schema, y):
		s.lossy("SingletonArrayToObject", "Only the first element is in the other version: is there never another one?", where)
	case kx == fields && ky == list && objects(y) && alike(y.Items.Schema, x):
		s.lossy("ObjectToSingletonArray", "Only the first element is in the other version: is there never another one?", where)
	case kx == list && ky == text && x.Items != nil && x.Items.Schema != nil && kindOf(x.Items.Schema).scalar():
		s.add("ListJoin", "Does no element contain a comma?", with("separator", ","))
	case kx == text && ky == list && y.Items != nil && y.Items.Schema != nil && kindOf(y.Items.Schema).scalar():
		s.add("ListSplit", "Do commas separate the elements?", with("separator", ","))
	case kx == list && ky == table && objects(x) && keyOf(x) != "":
		s.lossy("ArrayToMapByKey", order, with("keyField", keyOf(x)))
	case kx == table && ky == list && objects(y) && keyOf(y) != "":
		s.lossy("MapToArrayByKey", order, with("keyField", keyOf(y)))
	default:
		return false
	}
	return true
}

func alike(x, y *v1.JSONSchemaProps) bool {
	_, a := difference(x, y)
	_, b := difference(y, x)
	return !a && !b
}

// onlyKey returns the one field of an object, if it is of a kind.
func onlyKey(s *v1.JSONSchemaProps, k kind) string {
	for name, of := range s.Properties {
		if len(s.Properties) == 1 && kindOf(&of) == k {
			return name
		}
	}
	return ""
}

// keyOf returns the field by which the elements of a list are distinguished.
func keyOf(s *v1.JSONSchemaProps) string {
	names := []string{"name", "key", "id"}
	if len(s.XListMapKeys) == 1 {
		names = s.XListMapKeys
	}
	for _, name := range names {
		if of, ok := s.Items.Schema.Properties[name]; ok && kindOf(&of) == text {
			return name
		}
	}
	return ""
}

// values suggests a rule for a field whose values differ.
func (s *suggester) values(at path, x, y *v1.JSONSchemaProps) {
	all := func(schema *v1.JSONSchemaProps) (out []any) {
		for _, e := range schema.Enum {
			out = append(out, decoded(e.Raw))
		}
		return out
	}
	hub, spoke := all(x), all(y)
	var mapping []any
	for _, v := range hub {
		if slices.Contains(spoke, v) {
			mapping = append(mapping, map[string]any{"hub": v, "spoke": v})
		}
	}
	rest := func(of, other []any) []any {
		return slices.DeleteFunc(slices.Clone(of), func(v any) bool { return slices.Contains(other, v) })
	}
	h, p := rest(hub, spoke), rest(spoke, hub)
	if len(h) == 0 && len(p) == 0 {
		return
	}
	for i := range min(len(h), len(p)) {
		mapping = append(mapping, map[string]any{"hub": h[i], "spoke": best(h[i], &p)})
	}
	s.add("EnumRemap", "Do these values mean the same? A value without a pair is refused.", params{"path": at.String(), "mapping": mapping})
}

// best removes the most similar value from others and returns it.
func best(v any, others *[]any) any {
	name, _ := v.(string)
	at, most := 0, -1.0
	for i, o := range *others {
		other, _ := o.(string)
		if score := similar(name, other); score > most {
			at, most = i, score
		}
	}
	out := (*others)[at]
	*others = slices.Delete(*others, at, at+1)
	return out
}

// pair suggests rules for the fields that only one version has.
func (s *suggester) pair() {
	s.joined(s.hubOnly, s.spokeOnly, "FieldsToScalar", "hubFields", "spokePath")
	s.joined(s.spokeOnly, s.hubOnly, "ScalarToFields", "spokeFields", "hubPath")
	type match struct {
		hub, spoke *lone
		score      float64
	}
	var all []match
	for _, h := range s.hubOnly {
		for _, p := range s.spokeOnly {
			if score := similar(h.path[len(h.path)-1], p.path[len(p.path)-1]); score >= 0.5 && alike(h.schema, p.schema) {
				all = append(all, match{h, p, score})
			}
		}
	}
	order.Stable(all, func(a, b match) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	for _, m := range all {
		if m.hub.used || m.spoke.used {
			continue
		}
		m.hub.used, m.spoke.used = true, true
		question := ""
		if m.score < 1 {
			question = "Is this field the same under another name?"
		}
		s.add("FieldRename", question, params{"hubPath": m.hub.path.String(), "spokePath": m.spoke.path.String()})
	}
	s.rest(s.hubOnly, "Hub", "ToAnnotation", "hubPath", "restoreOnReverse")
	s.rest(s.spokeOnly, "Spoke", "FromAnnotation", "spokePath", "stashOnReverse")
}

// rest keeps fields that the other version does not have in annotations.
func (s *suggester) rest(of []*lone, side, strategy, field, keeps string) {
	for _, l := range of {
		switch {
		case l.used:
		case s.depth > 0:
			s.lossy("Delete", "The other version has no field for "+l.path.String()+": may its value be lost?", params{"path": l.path.String(), "existsOn": side})
		default:
			s.add(strategy, "The other version has no such field: an annotation keeps its value. Is there another field for it?",
				params{field: l.path.String(), "key": s.key(l.path), keeps: true})
		}
	}
}

// key returns the key of the annotation with a field.
func (s *suggester) key(p path) string {
	name := strings.Join(p, ".")
	if len(name) > 63 {
		name = strings.TrimLeft(name[len(name)-63:], ".-_")
	}
	return s.group + "/" + name
}

// joined suggests rules for fields whose names are the parts of the name of a text, such as host and port of
// hostPort.
func (s *suggester) joined(parts, wholes []*lone, strategy, fieldsName, wholeName string) {
	for _, w := range wholes {
		if w.used || kindOf(w.schema) != text || len(w.schema.Enum) > 0 {
			continue
		}
		name := folded(w.path[len(w.path)-1])
		for _, a := range parts {
			for _, b := range parts {
				if a == b || a.used || b.used || w.used || !kindOf(a.schema).scalar() || !kindOf(b.schema).scalar() {
					continue
				}
				x, y := a.path[len(a.path)-1], b.path[len(b.path)-1]
				if folded(x)+folded(y) != name || !plainName.MatchString(x) || !plainName.MatchString(y) {
					continue
				}
				a.used, b.used, w.used = true, true, true
				s.lossy(strategy, "Is "+w.path.String()+" "+x+":"+y+"?", params{
					fieldsName: map[string]any{x: a.path.String(), y: b.path.String()}, wholeName: w.path.String(),
					"pattern": "^(?P<" + x + ">.*):(?P<" + y + ">[^:]*)$", "joinTemplate": "{{." + x + "}}:{{." + y + "}}",
				})
			}
		}
	}
}

func folded(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// similar compares two names: 1 for names that differ in the case of letters at most, 0 for others
// without a common part.
func similar(a, b string) float64 {
	x, y := folded(a), folded(b)
	switch {
	case x == y:
		return 1
	case len(x) == 0 || len(y) == 0:
		return 0
	case strings.HasPrefix(x, y) || strings.HasPrefix(y, x) || strings.HasSuffix(x, y) || strings.HasSuffix(y, x):
		return 0.6 + 0.3*float64(min(len(x), len(y)))/float64(max(len(x), len(y)))
	}
	common := 0
	for i := range x {
		for k := range y {
			n := 0
			for i+n < len(x) && k+n < len(y) && x[i+n] == y[k+n] {
				n++
			}
			common = max(common, n)
		}
	}
	return float64(common) / float64(max(len(x), len(y)))
}
