package conversion_test

import (
	"context"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

// BenchmarkConvert measures a conversion there and back of an object with forty fields, of which the rules
// move one, split one, or convert the elements of a list.
func BenchmarkConvert(b *testing.B) {
	const rename = "- {strategy: FieldRename, fieldRename: {hubPath: spec.size, spokePath: spec.old}}"
	const owners = ", managedFields: [{manager: a, operation: Apply, apiVersion: example.org/v2, fieldsV1: {f:spec: {f:size: {}, f:note: {}}}}]"
	for _, tt := range []struct{ name, hub, spoke, rule, object string }{
		{"rename", "size: string, note: string", "old: string, note: string", rename, "metadata: {name: a}, spec: {size: big, note: x}"},
		{"rename/owned", "size: string, note: string", "old: string, note: string", rename, "metadata: {name: a" + owners + "}, spec: {size: big, note: x}"},
		{"split", "host: string, port: string", "hostPort: string", "- {strategy: FieldsToScalar, fieldsToScalar: {spokePath: spec.hostPort, pattern: '^(?P<host>[^:]+):(?P<port>.+)$', hubFields: {host: spec.host, port: spec.port}, joinTemplate: '{{.host}}:{{.port}}', losslessOverride: true}}", "spec: {host: localhost, port: '80'}"},
		{"items", "x: [{a: string}]", "x: [{b: string}]", "- {strategy: ForEach, forEach: {hubItemsPath: spec.x, spokeItemsPath: spec.x, rules: [{strategy: FieldRename, fieldRename: {hubPath: a, spokePath: b}}]}}", "spec: {x: [{a: '1'}, {a: '2'}, {a: '3'}, {a: '4'}, {a: '5'}]}"},
		{"expression", "a: string", "a: string", "- strategy: CEL\n  acknowledgeLossy: true\n  reason: r\n  cel: {hubPaths: [spec.a], spokePaths: [spec.a], hubToSpoke: \"{'spec': {'a': object.spec.a + '!'}}\", spokeToHub: \"{'spec': {'a': object.spec.a.replace('!', '')}}\"}", "spec: {a: x}"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			c, report := compiled(b, tt.hub, tt.spoke, tt.rule, "")
			if len(report.Errors) > 0 {
				b.Fatal(report.Errors)
			}
			t := parsed(b, "v2", tt.object)
			for i := range 40 {
				t["spec"].(object.Tree)["field"+string(rune('a'+i%26))+string(rune('a'+i/26))] = "value"
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, version := range []string{"v1", "v2"} {
					if err := c.Convert(context.Background(), t, version); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
