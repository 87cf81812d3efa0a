package builtin

import (
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
)

// A node that refers to a kubelet configuration, an old feature, may keep a valid reference.
func TestNodeConfigSource(t *testing.T) {
	d := definition(t, "nodes")
	old := read(t, `{metadata: {name: a}, spec: {configSource: {configMap: {name: c, namespace: d, kubeletConfigKey: k}}}, status: {}}`)
	for _, tt := range []struct {
		node string
		want []string
	}{
		{`{metadata: {name: a}, spec: {configSource: {configMap: {name: c, namespace: d, kubeletConfigKey: other}}}, status: {}}`, nil},
		{`{metadata: {name: a}, spec: {configSource: {}}, status: {}}`, []string{
			`spec.configSource: Invalid value: {"ConfigMap":null}: exactly one reference subfield must be non-nil`,
		}},
		{`{metadata: {name: a}, spec: {configSource: {configMap: {uid: u, kubeletConfigKey: k}}}, status: {}}`, []string{
			"spec.configSource.configMap.uid: Forbidden: uid must not be set in spec",
			"spec.configSource.configMap.namespace: Required value",
			"spec.configSource.configMap.name: Required value",
		}},
		{`{metadata: {name: a}, spec: {}, status: {config: {active: {configMap: {name: c, namespace: d, kubeletConfigKey: k}}}}}`, []string{
			"status.config.active.configMap.uid: Required value",
			"status.config.active.configMap.resourceVersion: Required value",
		}},
	} {
		same(t, tt.node, messages(d.Validate(t.Context(), &resource.Change{Object: read(t, tt.node), Old: old})), tt.want)
	}
}
