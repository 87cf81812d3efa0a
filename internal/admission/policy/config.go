package policy

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// The kinds of what the plugins are told by the file of --admission-control-config-file.
const (
	ValidatingConfiguration = "ValidatingAdmissionPolicyConfiguration"
	MutatingConfiguration   = "MutatingAdmissionPolicyConfiguration"
)

// CheckConfig reads what a plugin is told, which is nil for nothing. Policies in files are not
// supported, so a folder of them is an error: whoever relies on them is to know.
func CheckConfig(data []byte, kind string) error {
	if data == nil {
		return nil
	}
	var c struct {
		metav1.TypeMeta    `json:",inline"`
		StaticManifestsDir string `json:"staticManifestsDir,omitempty"`
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return err
	}
	const version = "apiserver.config.k8s.io/v1"
	if c.APIVersion != version || c.Kind != kind {
		return fmt.Errorf("expected %s of %s, got %q of %q", kind, version, c.Kind, c.APIVersion)
	}
	if c.StaticManifestsDir != "" {
		return fmt.Errorf("staticManifestsDir: Invalid value: %q: policies in files are not supported: create them through the API", c.StaticManifestsDir)
	}
	return nil
}
