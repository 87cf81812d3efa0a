package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadConfiguration(t *testing.T) {
	const start = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	tests := []struct {
		name, file string
		want       map[string]string
		err        string
	}{
		{name: "in the file", file: start + "- {name: PodSecurity, configuration: {kind: A}}", want: map[string]string{"PodSecurity": `{"kind":"A"}`}},
		{name: "in another file beside it", file: start + "- {name: PodSecurity, path: other.yaml}", want: map[string]string{"PodSecurity": "kind: B\n"}},
		{name: "the first one counts", file: start + "- {name: A, configuration: {a: 1}}\n- {name: A, configuration: {a: 2}}", want: map[string]string{"A": `{"a":1}`}},
		{name: "nothing is said", file: start + "- {name: A}", want: map[string]string{"A": ""}},
		{name: "a file that is not there", file: start + "- {name: A, path: none}", err: "plugin A: open "},
		{name: "a field that is not there", file: start + "- {name: A, paths: none}", err: `unknown field "plugins[0].paths"`},
		{name: "another kind", file: "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n", err: "expected AdmissionConfiguration, got "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "admission.yaml")
			for name, content := range map[string]string{file: test.file, filepath.Join(dir, "other.yaml"): "kind: B\n"} {
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			configs, err := ReadConfiguration(file)
			if said := errorText(err); test.err == "" && said != "" || !strings.Contains(said, test.err) {
				t.Fatalf("error %q, want %q", said, test.err)
			}
			if len(configs) != len(test.want) {
				t.Fatalf("%s, want %v", configs, test.want)
			}
			for name, want := range test.want {
				if string(configs[name]) != want {
					t.Errorf("%s: %s, want %s", name, configs[name], want)
				}
			}
		})
	}
}
