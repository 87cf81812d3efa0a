package schema

import (
	"encoding/json"
	"reflect"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/status"
)

// coerce returns obj as the Go type writes it after it has read it.
func (t *goType) coerce(obj map[string]any, kind Kind) (map[string]any, error) {
	if t.settled(obj) {
		return obj, nil
	}
	return t.through(obj, kind)
}

// through puts obj into a value of the type and writes that.
func (t *goType) through(obj map[string]any, kind Kind) (map[string]any, error) {
	v := reflect.New(t.typ).Interface()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object.AppendJSON(nil, obj), v); err != nil {
		return nil, notOfKind(kind, err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, notOfKind(kind, err)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		return nil, notOfKind(kind, err)
	}
	return out, nil
}

// notOfKind says that what a client sent cannot be read as the kind.
func notOfKind(kind Kind, err error) error {
	return status.BadRequest("%s in version %q cannot be handled as a %s: %v", kind.Kind, kind.Version, kind.Kind, err)
}
