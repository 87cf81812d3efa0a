package policy

import (
	"strings"
	"testing"
)

func TestCheckConfig(t *testing.T) {
	const start = "apiVersion: apiserver.config.k8s.io/v1\nkind: ValidatingAdmissionPolicyConfiguration\n"
	tests := []struct{ name, config, err string }{
		{"nothing", "", ""},
		{"nothing is said", start, ""},
		{"a folder", start + "staticManifestsDir: /policies\n", "policies in files are not supported"},
		{"a field that is not there", start + "dir: /policies\n", `unknown field "dir"`},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\n", "expected ValidatingAdmissionPolicyConfiguration of apiserver.config.k8s.io/v1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var data []byte
			if test.config != "" {
				data = []byte(test.config)
			}
			err := CheckConfig(data, ValidatingConfiguration)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("%v, want %q", err, test.err)
			}
		})
	}
}
