package admission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/network/configfile"
)

// ReadConfiguration reads an AdmissionConfiguration and returns the configuration of each plugin,
// by name. The path of a plugin's file is relative to that file.
func ReadConfiguration(file string) (map[string][]byte, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("unable to read admission control configuration from %q [%w]", file, err)
	}
	c, err := configfile.Decode[*apiserver.AdmissionConfiguration](data, "AdmissionConfiguration")
	if err != nil {
		return nil, fmt.Errorf("admission-control-config-file %s: %w", file, err)
	}
	configs := map[string][]byte{}
	for _, p := range slices.Backward(c.Plugins) { // the first entry of a name wins
		if configs[p.Name], err = configurationOf(p, filepath.Dir(file)); err != nil {
			return nil, fmt.Errorf("admission-control-config-file %s: plugin %s: %w", file, p.Name, err)
		}
	}
	return configs, nil
}

func configurationOf(p apiserver.AdmissionPluginConfiguration, dir string) ([]byte, error) {
	switch {
	case p.Configuration != nil:
		return p.Configuration.Raw, nil
	case p.Path == "":
		return nil, nil
	case !filepath.IsAbs(p.Path):
		return os.ReadFile(filepath.Join(dir, p.Path))
	}
	return os.ReadFile(p.Path)
}
