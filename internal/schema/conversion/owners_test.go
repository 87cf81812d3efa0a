package conversion_test

import (
	"context"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// Ownership follows the fields: a moved field takes the ownership below it, the parts of a split field have
// the owner of the whole, and entries of one manager become one.
func TestOwners(t *testing.T) {
	for name, tt := range map[string]struct{ hub, spoke, rules, spec, entries, want string }{
		"a renamed field": {"new: {x: string}, same: string", "old: {x: string}, same: string", "- {strategy: FieldRename, fieldRename: {hubPath: spec.new, spokePath: spec.old}}", "",
			`[{manager: a, operation: Apply, apiVersion: example.org/v1, fieldsV1: {f:spec: {f:old: {.: {}, f:x: {}}, f:same: {}}}}]`,
			`[{manager: a, operation: Apply, apiVersion: example.org/v2, fieldsV1: {f:spec: {f:new: {.: {}, f:x: {}}, f:same: {}}}}]`},
		"parents without another field": {"x: string", "deep: {er: {x: string}}", "- {strategy: FieldRename, fieldRename: {hubPath: spec.x, spokePath: spec.deep.er.x}}", "",
			`[{manager: a, apiVersion: example.org/v1, fieldsV1: {f:spec: {f:deep: {f:er: {f:x: {}}}}}}]`,
			`[{manager: a, apiVersion: example.org/v2, fieldsV1: {f:spec: {f:x: {}}}}]`},
		"a split field": {"host: string, port: integer", "hostPort: string", "- {strategy: FieldsToScalar, fieldsToScalar: {spokePath: spec.hostPort, pattern: '^(?P<host>.+):(?P<port>.+)$', hubFields: {host: spec.host, port: spec.port}, joinTemplate: '{{.host}}:{{.port}}', losslessOverride: true}}", "hostPort: 'a:1'",
			`[{manager: a, apiVersion: example.org/v1, fieldsV1: {f:spec: {f:hostPort: {}}}}]`,
			`[{manager: a, apiVersion: example.org/v2, fieldsV1: {f:spec: {f:host: {}, f:port: {}}}}]`},
		"a field that is dropped": {"", "gone: string", "- {strategy: Delete, acknowledgeLossy: true, reason: r, delete: {path: spec.gone, existsOn: Spoke}}", "",
			`[{manager: a, apiVersion: example.org/v1, fieldsV1: {f:spec: {f:gone: {}}}}, {manager: b, apiVersion: other.org/v1, fieldsV1: {f:spec: {f:gone: {}}}}]`,
			`[{manager: b, apiVersion: other.org/v1, fieldsV1: {f:spec: {f:gone: {}}}}]`},
		"elements of a list": {"ports: [{id: string, number: integer}, map, id]", "ports: [{name: string, port: integer}, map, name]",
			"- {strategy: ForEach, forEach: {hubItemsPath: spec.ports, spokeItemsPath: spec.ports, rules: [{strategy: FieldRename, fieldRename: {hubPath: id, spokePath: name}}, {strategy: FieldRename, fieldRename: {hubPath: number, spokePath: port}}]}}", "",
			`[{manager: a, apiVersion: example.org/v1, fieldsV1: {f:spec: {f:ports: {'k:{"name":"x"}': {.: {}, f:name: {}, f:port: {}}}}}}]`,
			`[{manager: a, apiVersion: example.org/v2, fieldsV1: {f:spec: {f:ports: {'k:{"id":"x"}': {.: {}, f:id: {}, f:number: {}}}}}}]`},
		"a list that becomes a map": {"ports: {'*': {port: integer}}", "ports: [{name: string, port: integer}, map, name]", "- {strategy: MapToArrayByKey, acknowledgeLossy: true, reason: r, mapToArrayByKey: {hubPath: spec.ports, spokePath: spec.ports, keyField: name}}", "ports: [{name: x, port: 1}]",
			`[{manager: a, apiVersion: example.org/v1, fieldsV1: {f:spec: {f:ports: {'k:{"name":"x"}': {.: {}, f:name: {}, f:port: {}}}}}}]`,
			`[{manager: a, apiVersion: example.org/v2, fieldsV1: {f:spec: {f:ports: {f:x: {f:port: {}}}}}}]`},
		"a field in an annotation": {"", "note: string", "- {strategy: FromAnnotation, fromAnnotation: {spokePath: spec.note, key: example.org/note, stashOnReverse: true}}", "note: hi",
			`[{manager: a, apiVersion: example.org/v1, fieldsV1: {f:spec: {f:note: {}}}}]`,
			`[{manager: a, apiVersion: example.org/v2, fieldsV1: {f:metadata: {f:annotations: {f:example.org/note: {}}}}}]`},
		"entries of one manager": {"b: string, c: string", "a: string, c: string", "- {strategy: FieldRename, fieldRename: {hubPath: spec.b, spokePath: spec.a}}", "",
			`[{manager: a, operation: Update, apiVersion: example.org/v2, time: '2026-01-01T00:00:00Z', fieldsV1: {f:spec: {f:c: {}}}}, {manager: a, operation: Update, apiVersion: example.org/v1, time: '2026-02-01T00:00:00Z', fieldsV1: {f:spec: {f:a: {}}}}, {manager: a, operation: Apply, apiVersion: example.org/v1, fieldsV1: {f:spec: {f:a: {}}}}]`,
			`[{manager: a, operation: Update, apiVersion: example.org/v2, time: '2026-02-01T00:00:00Z', fieldsV1: {f:spec: {f:b: {}, f:c: {}}}}, {manager: a, operation: Apply, apiVersion: example.org/v2, fieldsV1: {f:spec: {f:b: {}}}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			c, report := compiled(t, tt.hub, tt.spoke, tt.rules, "")
			if errs := append(report.Errors, report.Unmapped...); len(errs) > 0 {
				t.Fatal(errs)
			}
			in := parsed(t, "v1", "metadata: {managedFields: "+tt.entries+"}, spec: {"+tt.spec+"}")
			if err := c.Convert(context.Background(), in, "v2"); err != nil {
				t.Fatal(err)
			}
			got, _ := in["metadata"].(object.Tree)
			want := parsed(t, "v2", "metadata: {managedFields: "+tt.want+"}")["metadata"].(object.Tree)
			if !object.Equal(got["managedFields"], want["managedFields"]) {
				t.Errorf("%s, want %s", show(object.Tree{"is": got["managedFields"]}), show(want))
			}
		})
	}
}
