// Package conversiontest makes random conversion rules, with the schemas that they fit.
//
// A rule is made first, and the fields that it is about are added to both schemas, so that all rules are
// valid. The package does not know the conversion.
package conversiontest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// A Case has rules between the hub v2 and the spoke v1, and their schemas.
type Case struct {
	Rules      []any
	Hub, Spoke *v1.JSONSchemaProps
	// Lossless is true if each conversion keeps all values, except for those that both engines refuse.
	Lossless bool
}

// Schemas returns the schemas by version.
func (c *Case) Schemas() map[string]*v1.JSONSchemaProps {
	return map[string]*v1.JSONSchemaProps{"v2": c.Hub, "v1": c.Spoke}
}

// Spec returns the spec of a CRDConversionConfig.
func (c *Case) Spec() []byte {
	data, err := json.Marshal(map[string]any{"hubVersion": "v2", "spokes": []any{map[string]any{"version": "v1", "rules": c.Rules}}})
	if err != nil {
		panic(err)
	}
	return data
}

type props = v1.JSONSchemaProps

func object() props { return props{Type: "object", Properties: map[string]props{}} }
func list(of props) props {
	return props{Type: "array", Items: &v1.JSONSchemaPropsOrArray{Schema: &of}}
}
func mapOf(of props) props {
	return props{Type: "object", AdditionalProperties: &v1.JSONSchemaPropsOrBool{Allows: true, Schema: &of}}
}

var text, integer, boolean, number = props{Type: "string"}, props{Type: "integer"}, props{Type: "boolean"}, props{Type: "number"}

// Random returns a case with up to n rules.
func Random(r *rand.Rand, n int) *Case {
	m := &maker{r: r, hub: object(), spoke: object(), lossless: true}
	m.fill(1+r.IntN(n), 0)
	hub, spoke := object(), object()
	hub.Properties["spec"], spoke.Properties["spec"] = m.hub, m.spoke
	hub.Required, spoke.Required = []string{"spec"}, []string{"spec"}
	return &Case{Rules: m.rules, Hub: &hub, Spoke: &spoke, Lossless: m.lossless}
}

type maker struct {
	r          *rand.Rand
	hub, spoke props
	rules      []any
	next       int
	lossless   bool
	nested     bool
}

func (m *maker) name() string { m.next++; return fmt.Sprintf("f%d", m.next) }

// path returns the path of a new field, sometimes in an object of its own.
func (m *maker) path(in *props, of props) string {
	name, prefix := m.name(), "spec."
	if m.nested {
		prefix = ""
	}
	if m.r.IntN(4) > 0 {
		in.Properties[name] = of
		return prefix + name
	}
	parent := fmt.Sprintf("in%d", m.r.IntN(3))
	below, ok := in.Properties[parent]
	if !ok {
		below = object()
	}
	below.Properties[name] = of
	in.Properties[parent] = below
	return prefix + parent + "." + name
}

func (m *maker) scalar() props { return []props{text, integer, boolean, number}[m.r.IntN(4)] }

// both adds a field of the same path to both versions.
func (m *maker) both(hub, spoke props) string {
	name := m.name()
	m.hub.Properties[name], m.spoke.Properties[name] = hub, spoke
	if m.nested {
		return name
	}
	return "spec." + name
}

func (m *maker) add(strategy, field string, lossy bool, params map[string]any) {
	rule := map[string]any{"strategy": strategy, field: params}
	if lossy {
		rule["acknowledgeLossy"], rule["reason"] = true, "a test"
		m.lossless = false
	}
	m.rules = append(m.rules, rule)
}

type dict = map[string]any

// fill adds n rules and some fields without a rule.
func (m *maker) fill(n, depth int) {
	for range n {
		kinds := []func(){m.rename, m.wrap, m.single, m.collect, m.stash, m.remap, m.present, m.coerce, m.byKey, m.scale, m.join, m.measure, m.renameKeys, m.split, m.expression, m.when, m.patch}
		if depth < 2 {
			kinds = append(kinds, func() { m.forEach(depth) })
		}
		if m.nested {
			kinds = append(kinds[:4:4], kinds[5:16]...) // items have no metadata, and a patch is of the whole object
		}
		kinds[m.r.IntN(len(kinds))]()
	}
	for range m.r.IntN(3) {
		of := m.scalar()
		m.both(of, of)
	}
}

func (m *maker) rename() {
	of := []props{m.scalar(), mapOf(text), list(text)}[m.r.IntN(3)]
	m.add("FieldRename", "fieldRename", false, dict{"hubPath": m.path(&m.hub, of), "spokePath": m.path(&m.spoke, of)})
}

func (m *maker) wrap() {
	of, whole := m.scalar(), object()
	whole.Properties["value"] = of
	if m.r.IntN(2) == 0 {
		m.add("ScalarToObject", "scalarToObject", false, dict{"hubPath": m.path(&m.hub, of), "spokePath": m.path(&m.spoke, whole), "key": "value"})
		return
	}
	m.add("ObjectToScalar", "objectToScalar", false, dict{"hubPath": m.path(&m.hub, whole), "spokePath": m.path(&m.spoke, of), "key": "value"})
}

func (m *maker) single() {
	of := object()
	of.Properties["x"] = m.scalar()
	array := list(of)
	one := int64(1)
	array.MaxItems = &one
	if m.r.IntN(2) == 0 {
		m.add("SingletonArrayToObject", "singletonArrayToObject", false, dict{"hubPath": m.path(&m.hub, array), "spokePath": m.path(&m.spoke, of)})
		return
	}
	m.add("ObjectToSingletonArray", "objectToSingletonArray", false, dict{"hubPath": m.path(&m.hub, of), "spokePath": m.path(&m.spoke, array)})
}

func (m *maker) collect() {
	whole := mapOf(text)
	if m.r.IntN(2) == 0 {
		a, b := m.path(&m.hub, text), m.path(&m.hub, text)
		m.add("FieldsToMap", "fieldsToMap", true, dict{"hubPaths": []string{a, b}, "spokeMapPath": m.path(&m.spoke, whole), "keyNames": dict{a: "key1"}, "onUnknownSpokeKey": "Drop"})
		return
	}
	a, b := m.path(&m.spoke, text), m.path(&m.spoke, text)
	m.add("MapToFields", "mapToFields", true, dict{"hubMapPath": m.path(&m.hub, whole), "spokePaths": []string{a, b}, "keyNames": dict{b: "key2"}, "onUnknownHubKey": "Drop"})
}

func (m *maker) stash() {
	key, kept := "example.org/"+m.name(), m.r.IntN(2) == 0
	of := []props{m.scalar(), list(text), mapOf(integer)}[m.r.IntN(3)]
	switch m.r.IntN(4) {
	case 0:
		m.add("ToAnnotation", "toAnnotation", !kept, dict{"hubPath": m.path(&m.hub, of), "key": key, "restoreOnReverse": kept})
	case 1:
		m.add("FromAnnotation", "fromAnnotation", !kept, dict{"spokePath": m.path(&m.spoke, of), "key": key, "stashOnReverse": kept})
	case 2:
		m.add("ToLabel", "toLabel", !kept, dict{"hubPath": m.path(&m.hub, text), "key": key, "serialization": "String", "restoreOnReverse": kept})
	default:
		m.add("FromLabel", "fromLabel", !kept, dict{"spokePath": m.path(&m.spoke, text), "key": key, "stashOnReverse": kept})
	}
}

func enum(values ...string) props {
	p := text
	for _, v := range values {
		p.Enum = append(p.Enum, v1.JSON{Raw: []byte(`"` + v + `"`)})
	}
	return p
}

func (m *maker) remap() {
	m.add("EnumRemap", "enumRemap", false, dict{"path": m.both(enum("Small", "Large"), enum("S", "L")),
		"mapping": []any{dict{"hub": "Small", "spoke": "S"}, dict{"hub": "Large", "spoke": "L"}}})
}

func (m *maker) present() {
	on, in := "Hub", &m.hub
	if m.r.IntN(2) == 0 {
		on, in = "Spoke", &m.spoke
	}
	switch m.r.IntN(3) {
	case 0:
		m.add("Delete", "delete", true, dict{"path": m.path(in, text), "existsOn": on})
	case 1:
		m.add("DefaultValue", "defaultValue", true, dict{"path": m.path(in, integer), "existsOn": on, "default": 7})
	default:
		m.add("Constant", "constant", true, dict{"path": m.path(in, text), "existsOn": on, "value": "always"})
	}
}

func (m *maker) coerce() {
	pairs := [][2]props{{integer, text}, {boolean, text}, {integer, number}, {text, integer}}
	p := pairs[m.r.IntN(len(pairs))]
	m.lossless = false // of usual forms only
	m.add("TypeCoerce", "typeCoerce", true, dict{"path": m.both(p[0], p[1]), "onFractionalInteger": []string{"Error", "Truncate", "Round"}[m.r.IntN(3)]})
}

func (m *maker) byKey() {
	of := object()
	of.Properties["name"], of.Properties["x"] = text, m.scalar()
	of.Required = []string{"name"}
	rest := object()
	rest.Properties["x"] = of.Properties["x"]
	array := list(of)
	keyed := "map"
	array.XListType, array.XListMapKeys = &keyed, []string{"name"}
	if m.r.IntN(2) == 0 {
		m.add("ArrayToMapByKey", "arrayToMapByKey", true, dict{"hubPath": m.path(&m.hub, array), "spokePath": m.path(&m.spoke, mapOf(rest)), "keyField": "name"})
		return
	}
	m.add("MapToArrayByKey", "mapToArrayByKey", true, dict{"hubPath": m.path(&m.hub, mapOf(rest)), "spokePath": m.path(&m.spoke, array), "keyField": "name"})
}

func (m *maker) scale() {
	p := [][2]props{{integer, integer}, {number, number}, {integer, number}}[m.r.IntN(3)]
	m.add("NumericScale", "numericScale", true, dict{"hubPath": m.path(&m.hub, p[0]), "spokePath": m.path(&m.spoke, p[1]), "factor": []float64{1024, 2, 0.5, 1000}[m.r.IntN(4)]})
}

func (m *maker) join() {
	of := list([]props{text, integer}[m.r.IntN(2)])
	if m.r.IntN(2) == 0 {
		m.add("ListJoin", "listJoin", false, dict{"hubPath": m.path(&m.hub, of), "spokePath": m.path(&m.spoke, text), "separator": ","})
	} else {
		m.add("ListSplit", "listSplit", false, dict{"hubPath": m.path(&m.hub, text), "spokePath": m.path(&m.spoke, of), "separator": ","})
	}
	m.lossless = false // the numbers of a text
}

func (m *maker) measure() {
	a, b := integer, text
	strategy, field := "Duration", "duration"
	if m.r.IntN(2) == 0 {
		strategy, field = "Quantity", "quantity"
	}
	b.Enum = enum("90s", "2m", "1h30m0s").Enum
	if strategy == "Quantity" {
		b.Enum = enum("100m", "2", "1Gi").Enum
	}
	if m.r.IntN(2) == 0 {
		a, b = b, a
	}
	m.add(strategy, field, true, dict{"hubPath": m.path(&m.hub, a), "spokePath": m.path(&m.spoke, b)})
}

func (m *maker) renameKeys() {
	of := mapOf(text)
	m.lossless = false // the names of the other version
	m.add("MapKeyRename", "mapKeyRename", false, dict{"hubPath": m.path(&m.hub, of), "spokePath": m.path(&m.spoke, of), "renames": dict{"key1": "one", "key2": "two"}})
}

func (m *maker) split() {
	whole := enum("10Gi", "5Mi", "777K")
	if m.r.IntN(2) == 0 {
		m.add("ScalarToFields", "scalarToFields", false, dict{"hubPath": m.path(&m.hub, whole), "pattern": `^(?P<n>\d+)(?P<unit>[A-Za-z]+)$`,
			"spokeFields": dict{"n": m.path(&m.spoke, integer), "unit": m.path(&m.spoke, enum("Gi", "M"))}, "joinTemplate": "{{.n}}{{.unit}}", "losslessOverride": true})
	} else {
		m.add("FieldsToScalar", "fieldsToScalar", false, dict{"spokePath": m.path(&m.spoke, whole), "pattern": `^(?P<n>\d+)(?P<unit>[A-Za-z]+)$`,
			"hubFields": dict{"n": m.path(&m.hub, integer), "unit": m.path(&m.hub, enum("Gi", "M"))}, "joinTemplate": "{{.n}}{{.unit}}", "losslessOverride": true})
	}
}

// expression adds a rule in CEL. It fails without its field.
func (m *maker) expression() {
	a, b := m.name(), m.name()
	m.hub.Properties[a], m.spoke.Properties[b] = text, text
	m.hub.Required, m.spoke.Required = append(m.hub.Required, a), append(m.spoke.Required, b)
	prefix, result := "spec.", "{'%s': %s}"
	if m.nested {
		prefix = ""
	}
	object := "object." + prefix
	m.add("CEL", "cel", true, dict{"hubPaths": []string{prefix + a}, "spokePaths": []string{prefix + b},
		"hubToSpoke": fmt.Sprintf(result, prefix+b, object+a+" + '!'"), "spokeToHub": fmt.Sprintf(result, prefix+a, object+b+".startsWith('a') ? 'A' : "+object+b)})
}

// when adds a rule for some objects.
func (m *maker) when() {
	mode := m.both(enum("on", "off"), enum("on", "off"))
	m.remap()
	rule := m.rules[len(m.rules)-1].(dict)
	rule["when"], rule["acknowledgeLossy"], rule["reason"] = dict{"path": mode, "equals": "on"}, true, "a test"
	m.lossless = false
}

func (m *maker) patch() {
	a, b := m.name(), m.name()
	of := m.scalar()
	m.hub.Properties[a], m.spoke.Properties[b] = of, of
	m.hub.Required, m.spoke.Required = append(m.hub.Required, a), append(m.spoke.Required, b)
	m.add("JSONPatch", "jsonPatch", false, dict{"losslessOverride": true,
		"hubToSpoke": []any{dict{"op": "move", "from": "/spec/" + a, "path": "/spec/" + b}},
		"spokeToHub": []any{dict{"op": "move", "from": "/spec/" + b, "path": "/spec/" + a}}})
}

func (m *maker) forEach(depth int) {
	in := &maker{r: m.r, hub: object(), spoke: object(), lossless: true, nested: true}
	in.fill(1+m.r.IntN(2), depth+1)
	m.lossless = m.lossless && in.lossless
	rules := in.rules
	if rules == nil {
		rules = []any{}
	}
	m.add("ForEach", "forEach", false, dict{"hubItemsPath": m.path(&m.hub, list(in.hub)), "spokeItemsPath": m.path(&m.spoke, list(in.spoke)), "rules": rules})
}
