package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

func TestReadConfig(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "policy.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const start = "apiVersion: apiserver.config.k8s.io/v1\nkind: ValidatingAdmissionPolicyConfiguration\n"
	tests := []struct{ name, config, dir, err string }{
		{"nothing", "", "", ""},
		{"nothing is said", start, "", ""},
		{"a folder", start + "staticManifestsDir: " + folder, folder, ""},
		{"a relative path", start + "staticManifestsDir: policies", "", `staticManifestsDir: Invalid value: "policies": must be an absolute file path`},
		{"a path of nothing", start + "staticManifestsDir: " + folder + "/none", "", "none\": unable to read: stat "},
		{"a file", start + "staticManifestsDir: " + file, "", "policy.yaml\": must be a directory"},
		{"a field that is not there", start + "dir: /policies\n", "", `unknown field "dir"`},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\n", "", "expected ValidatingAdmissionPolicyConfiguration of apiserver.config.k8s.io/v1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var data []byte
			if test.config != "" {
				data = []byte(test.config)
			}
			c, err := ReadConfig(data, ValidatingConfiguration, nil)
			switch {
			case test.err != "":
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v, want %q", err, test.err)
				}
			case err != nil:
				t.Error(err)
			case c.StaticManifestsDir != test.dir:
				t.Errorf("%q, want %q", c.StaticManifestsDir, test.dir)
			}
		})
	}
	off := gate.With(map[gate.Name]bool{gate.ManifestBasedAdmissionControlConfig: false})
	_, err := ReadConfig([]byte(start+"staticManifestsDir: "+folder), ValidatingConfiguration, off)
	if err == nil || !strings.Contains(err.Error(), "staticManifestsDir: Forbidden: staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate") {
		t.Errorf("without the gate: %v", err)
	}
}
