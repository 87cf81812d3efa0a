package webhook

import (
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/network/kubeconfig"
	client "github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object/gate"
)

// A Config is the configuration of one of the plugins in the file of
// --admission-control-config-file.
type Config struct {
	metav1.TypeMeta `json:",inline"`
	// KubeConfigFile has credentials by the hosts of webhooks.
	KubeConfigFile string `json:"kubeConfigFile"`
	// StaticManifestsDir is a directory with webhook configurations in files.
	StaticManifestsDir string `json:"staticManifestsDir,omitempty"`

	users client.Users
}

// ReadConfig decodes a WebhookAdmissionConfiguration and reads its kubeconfig file. Nil data is an
// empty configuration.
func ReadConfig(data []byte, gates *gate.Set) (*Config, error) {
	c := &Config{}
	if data == nil {
		return c, nil
	}
	if err := yaml.UnmarshalStrict(data, c); err != nil {
		return nil, err
	}
	const version, kind = "apiserver.config.k8s.io/v1", "WebhookAdmissionConfiguration"
	if c.APIVersion != version && c.APIVersion != "apiserver.config.k8s.io/v1alpha1" || c.Kind != kind {
		return nil, fmt.Errorf("expected %s of %s, got %q of %q", kind, version, c.Kind, c.APIVersion)
	}
	if err := manifest.CheckPath(c.StaticManifestsDir, gates); err != nil || c.KubeConfigFile == "" {
		return c, err
	}
	if !filepath.IsAbs(c.KubeConfigFile) {
		return nil, fmt.Errorf("kubeConfigFile: Invalid value: %q: must be an absolute file path", c.KubeConfigFile)
	}
	users, err := kubeconfig.Users(c.KubeConfigFile)
	c.users = client.Users(users)
	return c, err
}
