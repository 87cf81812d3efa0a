package conversion_test

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// schemaOf returns a schema with spec, from a short form of its fields: a type, or fields in fields.
func schemaOf(t testing.TB, fields string) *v1.JSONSchemaProps {
	t.Helper()
	var parsed map[string]any
	if err := yaml.Unmarshal([]byte("{"+fields+"}"), &parsed); err != nil {
		t.Fatal(err)
	}
	s := shortSchema(parsed)
	return &v1.JSONSchemaProps{Type: "object", Properties: map[string]v1.JSONSchemaProps{"spec": s}}
}

// shortSchema expands strings to types, lists to arrays, and objects to objects. The key "*" is that of a map.
func shortSchema(v any) v1.JSONSchemaProps {
	switch v := v.(type) {
	case map[string]any:
		out := v1.JSONSchemaProps{Type: "object"}
		for name, of := range v {
			below := shortSchema(of)
			if name == "*" {
				out.AdditionalProperties = &v1.JSONSchemaPropsOrBool{Allows: true, Schema: &below}
				continue
			}
			if out.Properties == nil {
				out.Properties = map[string]v1.JSONSchemaProps{}
			}
			out.Properties[name] = below
		}
		return out
	case []any:
		below := shortSchema(v[0])
		out := v1.JSONSchemaProps{Type: "array", Items: &v1.JSONSchemaPropsOrArray{Schema: &below}}
		if len(v) > 1 { // the type of the list, and its key
			kind := v[1].(string)
			out.XListType = &kind
			for _, key := range v[2:] {
				out.XListMapKeys = append(out.XListMapKeys, key.(string))
			}
		}
		return out
	case string:
		if v == "any" {
			yes := true
			return v1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
		}
		return v1.JSONSchemaProps{Type: v}
	}
	panic(v)
}

// compiled compiles rules between v2, the hub, and v1.
func compiled(t testing.TB, hub, spoke, rules, more string) (*conversion.Converter, *conversion.Report) {
	t.Helper()
	text := "hubVersion: v2\n" + more + "spokes:\n- version: v1\n  rules:\n"
	if rules == "[]" {
		text, rules = strings.TrimSuffix(text, "\n")+" []\n", ""
	}
	for line := range strings.Lines(strings.TrimSpace(rules) + "\n") {
		text += "  " + line
	}
	parsed, err := conversion.ParseText(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return conversion.Compile(parsed, "example.org", map[string]*v1.JSONSchemaProps{"v2": schemaOf(t, hub), "v1": schemaOf(t, spoke)}, field.NewPath("spec"))
}

func parsed(t testing.TB, version, text string) object.Tree {
	t.Helper()
	out := object.Tree{}
	data, err := yaml.YAMLToJSON([]byte("{" + text + "}"))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		t.Fatal(err)
	}
	out["apiVersion"], out["kind"] = "example.org/"+version, "Widget"
	return out
}

// Each strategy converts an object of the hub to one of the spoke, and back.
func TestStrategies(t *testing.T) {
	const lossy = ", acknowledgeLossy: true, reason: a test"
	for name, tt := range map[string]struct {
		hub, spoke, rule string
		v2, v1           string
		back             string // what becomes of v1, if not v2
	}{
		"FieldRename": {"size: string", "old: {size: string}", "- {strategy: FieldRename, fieldRename: {hubPath: spec.size, spokePath: spec.old.size}}",
			"spec: {size: big}", "spec: {old: {size: big}}", ""},
		"FieldRename of an object": {"disk: {size: string, kind: string}", "volume: {size: string, kind: string}", "- {strategy: FieldRename, fieldRename: {hubPath: spec.disk, spokePath: spec.volume}}",
			"spec: {disk: {size: big}}", "spec: {volume: {size: big}}", ""},
		"FieldRename of two into each other": {"a: string, b: string", "a: string, b: string",
			"- {strategy: FieldRename, fieldRename: {hubPath: spec.a, spokePath: spec.b}}\n- {strategy: FieldRename, fieldRename: {hubPath: spec.b, spokePath: spec.a}}",
			"spec: {a: x, b: y}", "spec: {a: y, b: x}", ""},
		"ScalarToObject": {"replicas: integer", "replicas: {count: integer, note: string}",
			"- {strategy: ScalarToObject, scalarToObject: {hubPath: spec.replicas, spokePath: spec.replicas, key: count, defaultsForOtherKeys: {note: none}}" + lossy + "}",
			"spec: {replicas: 3}", "spec: {replicas: {count: 3, note: none}}", ""},
		"ObjectToScalar": {"network: {cidr: string}", "cidr: string", "- {strategy: ObjectToScalar, objectToScalar: {hubPath: spec.network, spokePath: spec.cidr, key: cidr}}",
			"spec: {network: {cidr: 10.0.0.0/8}}", "spec: {cidr: 10.0.0.0/8}", ""},
		"SingletonArrayToObject": {"zones: [{name: string}]", "zone: {name: string}", "- {strategy: SingletonArrayToObject, singletonArrayToObject: {hubPath: spec.zones, spokePath: spec.zone}" + lossy + "}",
			"spec: {zones: [{name: a}, {name: b}]}", "spec: {zone: {name: a}}", "spec: {zones: [{name: a}]}"},
		"FieldsToMap": {"cpu: string, memory: string", "limits: {'*': string}",
			"- {strategy: FieldsToMap, fieldsToMap: {hubPaths: [spec.cpu, spec.memory], spokeMapPath: spec.limits, keyNames: {spec.memory: ram}}}",
			"spec: {cpu: '1', memory: 1Gi}", "spec: {limits: {cpu: '1', ram: 1Gi}}", ""},
		"ToAnnotation": {"note: {text: string}", "", "- {strategy: ToAnnotation, toAnnotation: {hubPath: spec.note, key: example.org/note, restoreOnReverse: true}}",
			"spec: {note: {text: hi}}", "spec: {}, metadata: {annotations: {example.org/note: '{\"text\":\"hi\"}'}}", "spec: {note: {text: hi}}, metadata: {}"},
		"FromLabel": {"", "tier: string", "- {strategy: FromLabel, fromLabel: {spokePath: spec.tier, key: tier, stashOnReverse: true}}",
			"metadata: {labels: {tier: gold, other: x}}", "metadata: {labels: {other: x}}, spec: {tier: gold}", "metadata: {labels: {tier: gold, other: x}}, spec: {}"},
		"EnumRemap": {"size: string", "size: string", "- {strategy: EnumRemap, enumRemap: {path: spec.size, mapping: [{hub: Small, spoke: S}, {hub: Large, spoke: L}]}}",
			"spec: {size: Large}", "spec: {size: L}", ""},
		"EnumRemap of numbers": {"size: integer", "size: string", "- {strategy: EnumRemap, enumRemap: {path: spec.size, mapping: [{hub: 1, spoke: one}]}}",
			"spec: {size: 1}", "spec: {size: one}", ""},
		"DefaultValue": {"", "units: integer", "- {strategy: DefaultValue, defaultValue: {path: spec.units, existsOn: Spoke, default: 1}" + lossy + "}",
			"spec: {}", "spec: {units: 1}", ""},
		"Constant": {"version: string", "", "- {strategy: Constant, constant: {path: spec.version, existsOn: Hub, value: two}" + lossy + "}",
			"spec: {version: two}", "spec: {}", ""},
		"Delete": {"debug: boolean", "", "- {strategy: Delete, delete: {path: spec.debug, existsOn: Hub}" + lossy + "}",
			"spec: {debug: true}", "spec: {}", "spec: {}"},
		"JSONPatch": {"a: string, list: [string]", "b: string, list: [string]",
			"- strategy: JSONPatch\n  jsonPatch:\n    losslessOverride: true\n    hubToSpoke: [{op: move, from: /spec/a, path: /spec/b}, {op: add, path: /spec/list/0, value: first}]\n    spokeToHub: [{op: move, from: /spec/b, path: /spec/a}, {op: remove, path: /spec/list/0}]",
			"spec: {a: x, list: [y]}", "spec: {b: x, list: [first, y]}", ""},
		"ForEach": {"ports: [{name: string, number: integer, deep: [{a: string}]}]", "ports: [{name: string, port: integer, deep: [{b: string}]}]",
			"- strategy: ForEach\n  forEach:\n    hubItemsPath: spec.ports\n    spokeItemsPath: spec.ports\n    rules:\n    - {strategy: FieldRename, fieldRename: {hubPath: number, spokePath: port}}\n    - {strategy: ForEach, forEach: {hubItemsPath: deep, spokeItemsPath: deep, rules: [{strategy: FieldRename, fieldRename: {hubPath: a, spokePath: b}}]}}",
			"spec: {ports: [{name: x, number: 1}, {number: 2, deep: [{a: q}]}]}", "spec: {ports: [{name: x, port: 1}, {port: 2, deep: [{b: q}]}]}", ""},
		"TypeCoerce": {"priority: integer", "priority: string", "- {strategy: TypeCoerce, typeCoerce: {path: spec.priority}}",
			"spec: {priority: 9007199254740993}", "spec: {priority: '9007199254740993'}", ""},
		"ScalarToFields": {"disk: string", "value: integer, unit: string",
			"- {strategy: ScalarToFields, scalarToFields: {hubPath: spec.disk, pattern: '^(?P<value>\\d+)(?P<unit>[A-Za-z]+)$', spokeFields: {value: spec.value, unit: spec.unit}, joinTemplate: '{{.value}}{{ .unit }}', losslessOverride: true}}",
			"spec: {disk: 10Gi}", "spec: {value: 10, unit: Gi}", ""},
		"ArrayToMapByKey": {"ports: [{name: string, port: integer}]", "ports: {'*': {port: integer}}", "- {strategy: ArrayToMapByKey, arrayToMapByKey: {hubPath: spec.ports, spokePath: spec.ports, keyField: name}" + lossy + "}",
			"spec: {ports: [{name: b, port: 1}, {name: a, port: 2}]}", "spec: {ports: {a: {port: 2}, b: {port: 1}}}", "spec: {ports: [{name: a, port: 2}, {name: b, port: 1}]}"},
		"NumericScale": {"mb: integer", "gb: number", "- {strategy: NumericScale, numericScale: {hubPath: spec.mb, spokePath: spec.gb, factor: 1024}" + lossy + "}",
			"spec: {mb: 1536}", "spec: {gb: 1.5}", ""},
		"ListJoin": {"servers: [string]", "servers: string", "- {strategy: ListJoin, listJoin: {hubPath: spec.servers, spokePath: spec.servers, separator: ','}}",
			"spec: {servers: [a, b]}", "spec: {servers: 'a,b'}", ""},
		"ListSplit of numbers": {"ports: string", "ports: [integer]", "- {strategy: ListSplit, listSplit: {hubPath: spec.ports, spokePath: spec.ports, separator: ';'}}",
			"spec: {ports: '80;443'}", "spec: {ports: [80, 443]}", ""},
		"Quantity": {"cpu: string", "milli: integer", "- {strategy: Quantity, quantity: {hubPath: spec.cpu, spokePath: spec.milli}" + lossy + "}",
			"spec: {cpu: 1500m}", "spec: {milli: 1500}", ""},
		"Duration": {"seconds: integer", "timeout: string", "- {strategy: Duration, duration: {hubPath: spec.seconds, spokePath: spec.timeout}" + lossy + "}",
			"spec: {seconds: 90}", "spec: {timeout: 1m30s}", ""},
		"MapKeyRename": {"tags: {'*': string}", "labels: {'*': string}", "- {strategy: MapKeyRename, mapKeyRename: {hubPath: spec.tags, spokePath: spec.labels, renames: {env: environment}}}",
			"spec: {tags: {env: x, other: y}}", "spec: {labels: {environment: x, other: y}}", ""},
		"CEL": {"first: string, last: string", "name: string",
			"- strategy: CEL\n  acknowledgeLossy: true\n  reason: a test\n  cel:\n    hubPaths: [spec.first, spec.last]\n    spokePaths: [spec.name]\n    hubToSpoke: \"{'spec': {'name': object.spec.first + ' ' + object.spec.last}}\"\n    spokeToHub: \"{'spec.first': object.spec.name.split(' ')[0], 'spec.last': object.spec.name.split(' ')[1]}\"",
			"spec: {first: Ada, last: Lovelace}", "spec: {name: Ada Lovelace}", ""},
		"when": {"size: string, mode: string", "size: string, mode: string",
			"- {strategy: EnumRemap, when: {path: spec.mode, equals: new}, enumRemap: {path: spec.size, mapping: [{hub: Small, spoke: S}]}" + lossy + "}",
			"spec: {mode: new, size: Small}", "spec: {mode: new, size: S}", ""},
		"unknown fields stay": {"a: any", "b: any", "- {strategy: FieldRename, fieldRename: {hubPath: spec.a, spokePath: spec.b}}",
			"spec: {a: {x: {y: [1]}}, more: z}", "spec: {b: {x: {y: [1]}}, more: z}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, report := compiled(t, tt.hub, tt.spoke, tt.rule, "")
			if errs := append(report.Errors, report.Unmapped...); len(errs) > 0 {
				t.Fatal(errs)
			}
			got := parsed(t, "v2", tt.v2)
			if err := c.Convert(context.Background(), got, "v1"); err != nil {
				t.Fatal(err)
			}
			if want := parsed(t, "v1", tt.v1); !object.Equal(got, want) {
				t.Errorf("v1: %s, want %s", show(got), show(want))
			}
			want := tt.v2
			if tt.back != "" {
				want = tt.back
			}
			if err := c.Convert(context.Background(), got, "v2"); err != nil {
				t.Fatal(err)
			}
			if want := parsed(t, "v2", want); !object.Equal(got, want) {
				t.Errorf("back: %s, want %s", show(got), show(want))
			}
		})
	}
}
