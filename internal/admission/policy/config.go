package policy

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/object/gate"
)

// The kinds of the plugins' configurations in the file of --admission-control-config-file.
const (
	ValidatingConfiguration = "ValidatingAdmissionPolicyConfiguration"
	MutatingConfiguration   = "MutatingAdmissionPolicyConfiguration"
)

// A Config is the configuration of one of the plugins.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// StaticManifestsDir is a directory with policies and bindings in files.
	StaticManifestsDir string `json:"staticManifestsDir,omitempty"`
}

// ReadConfig decodes the configuration of a plugin. Nil data is an empty configuration.
func ReadConfig(data []byte, kind string, gates *gate.Set) (*Config, error) {
	c := &Config{}
	if data == nil {
		return c, nil
	}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, err
	}
	const version = "apiserver.config.k8s.io/v1"
	if c.APIVersion != version || c.Kind != kind {
		return nil, fmt.Errorf("expected %s of %s, got %q of %q", kind, version, c.Kind, c.APIVersion)
	}
	return c, manifest.CheckPath(c.StaticManifestsDir, gates)
}
