package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/schema/gotype"
)

// Renamed has two packages: types of the first one have the names of their namesakes in the second one, except Aliases:
// the second package only has aliases of these. The zero value renames nothing.
type Renamed struct {
	From, To string
	Aliases  []string
}

// of returns the package of a type.
func (r Renamed) of(t reflect.Type) string {
	if r.From != "" && t.PkgPath() == r.From && !slices.Contains(r.Aliases, t.Name()) {
		return r.To
	}
	return t.PkgPath()
}

// nameOf returns the name of the model of a type.
func (r Renamed) nameOf(t reflect.Type) string { return gotype.NameOf(r.of(t), t.Name()) }

// Error returns the error of decoding with the names of types that Kubernetes has in it.
func (r Renamed) Error(err error) error {
	var wrong *json.UnmarshalTypeError
	if r.From == "" || !errors.As(err, &wrong) {
		return err
	}
	name, renamed := wrong.Type.String(), r.goName(wrong.Type)
	if name == renamed {
		return err
	}
	return fmt.Errorf("%s", strings.Replace(err.Error(), "of type "+name, "of type "+renamed, 1))
}

// goName returns how Go writes a type, with the packages of Kubernetes.
func (r Renamed) goName(t reflect.Type) string {
	if t.PkgPath() != "" {
		return path.Base(r.of(t)) + "." + t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + r.goName(t.Elem())
	case reflect.Slice:
		return "[]" + r.goName(t.Elem())
	case reflect.Map:
		return "map[" + r.goName(t.Key()) + "]" + r.goName(t.Elem())
	}
	return t.String()
}
