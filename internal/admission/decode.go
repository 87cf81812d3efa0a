package admission

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Decode decodes the configuration of a plugin, which has an apiVersion and a kind. A nil
// configuration decodes as an empty one.
func Decode[T any](config []byte, kind schema.GroupVersionKind) (*T, error) {
	out := new(T)
	if config == nil {
		return out, nil
	}
	data, err := yaml.YAMLToJSON(config)
	if err != nil {
		return nil, err
	}
	var is metav1.TypeMeta
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, err
	}
	if is.GroupVersionKind() != kind {
		return nil, fmt.Errorf("the configuration is a %q of %q, not a %q of %q", is.Kind, is.APIVersion, kind.Kind, kind.GroupVersion())
	}
	return out, json.Unmarshal(data, out)
}
