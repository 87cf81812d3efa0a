package examples

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// There are hundreds of examples, of most kinds.
func TestPublished(t *testing.T) {
	kinds := map[string]int{}
	all := published(t)
	for _, d := range all {
		kinds[d.Kind]++
	}
	for _, kind := range strings.Fields(`Pod Deployment Service ConfigMap Secret StatefulSet DaemonSet Job ReplicationController
		Role ClusterRole CustomResourceDefinition ResourceClaim HTTPRoute`) {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
	}
	if len(all) < 1000 {
		t.Errorf("%d objects, want 1000", len(all))
	}
}

func TestRead(t *testing.T) {
	const object = "kind: A\napiVersion: v1\nmetadata: {name: "
	for name, test := range map[string]struct{ file, text, want string }{
		"documents":                  {"a.yaml", object + "x}\n---\n# nothing\n---\n" + object + "z, namespace: home}\n", "x z"},
		"items of a list":            {"a.yml", "kind: List\napiVersion: v1\nitems:\n- {kind: A, apiVersion: v1, metadata: {name: x}}\n- {kind: A, apiVersion: v1, metadata: {name: z}}\n", "x z"},
		"values":                     {"a.json", `{"kind":"A","apiVersion":"v1","metadata":{"name":"x"}} {"kind":"A","apiVersion":"v1","metadata":{"name":"z"}}`, "x z"},
		"blocks":                     {"a.md", "Text\n\n```yaml\n" + object + "x}\n```\n\n1. A list:\n   ``` yaml\n   kind: A\n   apiVersion: v1\n   metadata:\n     name: z\n   ```\n\n```go\nno\n```\n", "x z"},
		"the same twice":             {"a.yaml", object + "x}\n---\n" + object + "x}\n", "x x"}, // Published removes the second one
		"a template, a part":         {"a.yaml", "kind: A\n---\napiVersion: v1\nkind: {{.Kind}}\n---\nmetadata: {name: x}\n", ""},
		"a file of another language": {"a.go", object + "x}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, test.file), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := read("test", dir)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, d := range all {
				names = append(names, d.Metadata.Name)
			}
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("read %q, want %q", got, test.want)
			}
		})
	}
}
