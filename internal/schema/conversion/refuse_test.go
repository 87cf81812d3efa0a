package conversion_test

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/conversion"
)

// Rules that are wrong, lossy, ambiguous, or too large are refused with the field and the reason.
func TestRefusedRules(t *testing.T) {
	const rename = "- {strategy: FieldRename, fieldRename: {hubPath: spec.a, spokePath: spec.b}}"
	for name, tt := range map[string]struct{ hub, spoke, rules, more, want string }{
		"no rule":                   {"a: string", "", "- {strategy: Delete, delete: {path: spec.b, existsOn: Spoke}}", "", `spec.spokes[0].rules[0].delete.path: Invalid value: "spec.b": in version v1: there is no field "b" in spec`},
		"a field without a rule":    {"a: string, x: string", "b: string", rename, "", "no rule is about spec.x of version v2: version v1 has no such field"},
		"another type":              {"a: string, x: string", "b: string, x: integer", rename, "", "no rule is about spec.x of version v2: its type is string, and integer in version v1"},
		"a field of elements":       {"x: [{a: string}]", "x: [{a: string, b: string}]", "[]", "", "no rule is about spec.x[].b of version v1"},
		"a field in a list":         {"x: [{a: string, deep: [{q: string}]}]", "x: [{b: string, deep: [{r: string}]}]", "- {strategy: ForEach, forEach: {hubItemsPath: spec.x, spokeItemsPath: spec.x, rules: [{strategy: FieldRename, fieldRename: {hubPath: a, spokePath: b}}]}}", "", "no rule is about spec.x[].deep[].q of version v2"},
		"a rename to another type":  {"a: string", "b: integer", rename, "", `fieldRename.spokePath: Invalid value: "spec.b": has the type integer; spec.a of version v2 has the type string`},
		"two rules for a field":     {"a: string", "b: string, c: string", rename + "\n- {strategy: FieldRename, fieldRename: {hubPath: spec.a, spokePath: spec.c}}", "", `rules[1].fieldRename.hubPath: Invalid value: "spec.a": rule 0 is about spec.a of version v2 already`},
		"a rule in another":         {"a: {x: string}", "b: {x: string}, c: string", rename + "\n- {strategy: FieldRename, fieldRename: {hubPath: spec.a.x, spokePath: spec.c}}", "", "rule 0 is about spec.a of version v2 already"},
		"a rename into another":     {"a: string, b: string", "b: string", rename, "", "no rule is about spec.b of version v2: another rule sets this field of version v1"},
		"a loss":                    {"a: string", "", "- {strategy: Delete, delete: {path: spec.a, existsOn: Hub}}", "", "rules[0].delete: Forbidden: a conversion from v2 to v1 loses values of spec.a: set acknowledgeLossy and a reason, or use a strategy that keeps them"},
		"a loss in a list":          {"x: [{a: string}]", "x: [{b: string}]", "- {strategy: ForEach, forEach: {hubItemsPath: spec.x, spokeItemsPath: spec.x, rules: [{strategy: Delete, delete: {path: a, existsOn: Hub}}]}}", "", "loses values of spec.x[].a"},
		"a loss by a condition":     {"a: string", "b: string", "- {strategy: FieldRename, when: {path: spec, equals: 1}, fieldRename: {hubPath: spec.a, spokePath: spec.b}}", "", "loses values of spec.a"},
		"an ambiguous mapping":      {"a: string", "a: string", "- {strategy: EnumRemap, enumRemap: {path: spec.a, mapping: [{hub: big, spoke: s}, {hub: huge, spoke: s}]}}", "", "from v2 to v1 loses values of spec.a"},
		"a value of another type":   {"a: string", "a: string", "- {strategy: EnumRemap, enumRemap: {path: spec.a, mapping: [{hub: x, spoke: 5}]}}", "", "enumRemap.mapping[0]: Invalid value: 5: spec.a has the type string"},
		"an unknown strategy":       {"a: string", "b: string", "- {strategy: Magic, magic: {}}", "", `rules[0].strategy: Unsupported value: "Magic": supported values: "ArrayToMapByKey", "CEL"`},
		"an unknown parameter":      {"a: string", "b: string", "- {strategy: FieldRename, fieldRename: {hubPath: spec.a, spokePath: spec.b, force: true}}", "", `unknown field "force"`},
		"other parameters":          {"a: string", "b: string", rename[:len(rename)-1] + ", cel: {}}", "", "rules[0].cel: Forbidden: a rule with the strategy FieldRename has its parameters in fieldRename"},
		"no parameters":             {"a: string", "b: string", "- {strategy: FieldRename}", "", "rules[0].fieldRename: Required value: the parameters of the strategy FieldRename"},
		"the kind":                  {"a: string", "b: string", "- {strategy: FieldRename, fieldRename: {hubPath: kind, spokePath: spec.b}}", "", "the server sets this field"},
		"metadata by a patch":       {"", "", "- {strategy: JSONPatch, jsonPatch: {losslessOverride: true, hubToSpoke: [{op: remove, path: /metadata/finalizers}]}}", "", "must be a field below spec, status or another one of the schema"},
		"no JSON patch":             {"", "", "- {strategy: JSONPatch, jsonPatch: {losslessOverride: true, hubToSpoke: [5]}}", "", "jsonPatch.hubToSpoke: Invalid value"},
		"no expression":             {"a: string", "a: string", "- {strategy: CEL, acknowledgeLossy: true, reason: r, cel: {hubPaths: [spec.a], spokePaths: [spec.a], hubToSpoke: 'object.', spokeToHub: '{}'}}", "", "Syntax error"},
		"a number by an expression": {"a: string", "a: string", "- {strategy: CEL, acknowledgeLossy: true, reason: r, cel: {hubPaths: [spec.a], spokePaths: [spec.a], hubToSpoke: '5', spokeToHub: '{}'}}", "", "must be a map of fields, not of the type int"},
		"the request":               {"a: string", "a: string", "- {strategy: CEL, acknowledgeLossy: true, reason: r, cel: {hubPaths: [spec.a], spokePaths: [spec.a], hubToSpoke: 'request.userInfo', spokeToHub: '{}'}}", "", "undeclared reference to 'request'"},
		"no pattern":                {"a: string", "b: string", "- {strategy: ScalarToFields, scalarToFields: {hubPath: spec.a, pattern: '(', spokeFields: {x: spec.b}, joinTemplate: '{{.x}}'}}", "", "error parsing regexp"},
		"a template that computes":  {"a: string", "b: string", "- {strategy: ScalarToFields, scalarToFields: {hubPath: spec.a, pattern: '(?P<x>.)', spokeFields: {x: spec.b}, joinTemplate: '{{range .x}}{{end}}'}}", "", "may have fields such as {{.value}} only"},
		"metadata of elements":      {"x: [{a: string}]", "x: [{b: string}]", "- {strategy: ForEach, forEach: {hubItemsPath: spec.x, spokeItemsPath: spec.x, rules: [{strategy: ToAnnotation, toAnnotation: {hubPath: a, key: x.y/a, restoreOnReverse: true}}]}}", "", "the elements of a list have no metadata"},
		"a wrong key":               {"a: string", "", "- {strategy: ToLabel, toLabel: {hubPath: spec.a, key: 'a b', serialization: String, restoreOnReverse: true}}", "", `toLabel.key: Invalid value: "a b"`},
		"too many fields":           {"a: string", "m: {'*': string}", "- {strategy: FieldsToMap, fieldsToMap: {spokeMapPath: spec.m, hubPaths: [" + strings.Repeat("spec.a, ", 3000) + "spec.a]}}", "", "Too many: 2049: must have at most 2048 items"},
		"too many rules":            {"a: string", "b: string", strings.Repeat(rename+"\n", 600), "", "Too many: 600: must have at most 512 items"},
		"the hub as a spoke":        {"a: string", "a: string", "[]", "targetCRD: {name: x}\nunmappedFieldPolicy: Ignore\n", `unmappedFieldPolicy: Unsupported value: "Ignore"`},
		"warnings without a reason": {"a: string", "", "[]", "unmappedFieldPolicy: Warn\n", "unmappedFieldReason: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			_, report := compiled(t, tt.hub, tt.spoke, tt.rules, tt.more)
			errs := append(report.Errors, report.Unmapped...).ToAggregate()
			if errs == nil || !strings.Contains(errs.Error(), tt.want) {
				t.Errorf("%v, want %s", errs, tt.want)
			}
		})
	}
}

// Values that rules do not allow are refused with their field.
func TestRefusedValues(t *testing.T) {
	for name, tt := range map[string]struct{ hub, spoke, rule, v1, want string }{
		"a value without a pair": {"a: string", "a: string", "- {strategy: EnumRemap, enumRemap: {path: spec.a, mapping: [{hub: Small, spoke: S}]}}",
			"spec: {a: M}", `spec.a: Invalid value: "M": the conversion rules map the values [S] only`},
		"no number": {"a: integer", "a: string", "- {strategy: TypeCoerce, typeCoerce: {path: spec.a}}",
			"spec: {a: five}", `spec.a: Invalid value: "five": is no value of the type integer, which the field has in the other version`},
		"a fraction": {"a: integer", "a: number", "- {strategy: TypeCoerce, typeCoerce: {path: spec.a}}",
			"spec: {a: 1.5}", `spec.a: Invalid value: 1.5: is not a whole number, and the other version has an integer`},
		"a key twice": {"a: {'*': {x: string}}", "a: [{name: string, x: string}]", "- {strategy: MapToArrayByKey, acknowledgeLossy: true, reason: r, mapToArrayByKey: {hubPath: spec.a, spokePath: spec.a, keyField: name}}",
			"spec: {a: [{name: q}, {name: q}]}", `spec.a: Invalid value: [{"name":"q"},{"name":"q"}]: the elements with name "q" have the same key in the other version`},
		"an element": {"a: [{x: integer}]", "a: [{x: string}]", "- {strategy: ForEach, forEach: {hubItemsPath: spec.a, spokeItemsPath: spec.a, rules: [{strategy: TypeCoerce, typeCoerce: {path: x}}]}}",
			"spec: {a: [{x: '1'}, {x: q}]}", `spec.a[1].x: Invalid value: "q"`},
		"a text without its parts": {"a: string, b: string", "c: string", "- {strategy: FieldsToScalar, fieldsToScalar: {spokePath: spec.c, pattern: '^(?P<a>.+):(?P<b>.+)$', hubFields: {a: spec.a, b: spec.b}, joinTemplate: '{{.a}}:{{.b}}', losslessOverride: true}}",
			"spec: {c: nothing}", `spec.c: Invalid value: "nothing": must match`},
		"an endless expression": {"a: string", "a: [integer]", "- strategy: CEL\n  acknowledgeLossy: true\n  reason: r\n  cel:\n    hubPaths: [spec.a]\n    spokePaths: [spec.a]\n    hubToSpoke: '{}'\n    spokeToHub: \"{'spec': {'a': string(object.spec.a.all(x, object.spec.a.all(y, object.spec.a.all(z, object.spec.a.all(q, q > 0)))))}}\"",
			"spec: {a: [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}", "cost limit exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			c, report := compiled(t, tt.hub, tt.spoke, tt.rule, "")
			if errs := append(report.Errors, report.Unmapped...); len(errs) > 0 {
				t.Fatal(errs)
			}
			err := c.Convert(context.Background(), parsed(t, "v1", tt.v1), "v2")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// Claims of an author are tried with random objects. A wrong one is a warning with an example.
func TestClaimsAreTried(t *testing.T) {
	yes := `{"hubVersion":"v2","spokes":[{"version":"v1","rules":[{"strategy":"JSONPatch","jsonPatch":{"losslessOverride":true,
		"hubToSpoke":[{"op":"add","path":"/spec/b","value":"x"}],"spokeToHub":[{"op":"add","path":"/spec/a","value":"y"}]}}]}]}`
	crd := &v1.CustomResourceDefinition{Spec: v1.CustomResourceDefinitionSpec{Group: "example.org"}}
	crd.Annotations = map[string]string{conversion.Annotation: yes}
	for version, fields := range map[string]string{"v2": "a: string", "v1": "b: string"} {
		crd.Spec.Versions = append(crd.Spec.Versions, v1.CustomResourceDefinitionVersion{Name: version, Schema: &v1.CustomResourceValidation{OpenAPIV3Schema: schemaOf(t, fields)}})
	}
	report := conversion.CheckOf(crd)
	const want = "jsonPatch.losslessOverride: an object of version v2 does not keep spec.a on its way to version v1 and back"
	if len(report.Errors) > 0 || !strings.Contains(strings.Join(report.Warnings, "\n"), want) {
		t.Errorf("%v %q", report.Errors, report.Warnings)
	}
}
