package builtin

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/schema/gotype"
)

// types returns the structs in the objects of all kinds, by the names of their models. Versions with the Go types of
// another one have their published types.
func types() map[string]reflect.Type {
	out := map[string]reflect.Type{}
	var read func(reflect.Type)
	read = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		name := gotype.NameOf(of.PkgPath(), of.Name())
		if of.Kind() != reflect.Struct || out[name] != nil {
			return
		}
		out[name] = of
		for f := range gotype.Fields(of) {
			read(f.Type)
		}
	}
	for _, of := range renamed {
		read(reflect.TypeOf(of))
	}
	for _, d := range Definitions() {
		for _, v := range d.Versions {
			read(reflect.TypeOf(v.New()))
			for _, s := range v.Subresources {
				if s.Options != nil {
					read(reflect.TypeOf(s.Options))
				}
				if s.Definition != nil {
					read(reflect.TypeOf(s.Definition.Versions[0].New()))
				}
			}
		}
	}
	return out
}

// The name of a model follows from the package and the name of its type.
func TestModelsHaveTheNamesOfTypes(t *testing.T) {
	for name, of := range types() {
		named, ok := reflect.Zero(of).Interface().(interface{ OpenAPIModelName() string })
		if ok && strings.HasSuffix(named.OpenAPIModelName(), "."+of.Name()) && named.OpenAPIModelName() != name {
			t.Errorf("%s is %s in Kubernetes", name, named.OpenAPIModelName())
		}
	}
}

// Every line of the table applies to a Go type of a kind, except lists and kinds that are not
// served yet.
func TestTableIsAboutTypes(t *testing.T) {
	fields := map[string]map[string]bool{}
	for name, of := range types() {
		fields[name] = map[string]bool{"": true}
		for f := range gotype.Fields(of) {
			fields[name][f.JSONName] = true
		}
	}
	later := []string{"io.k8s.api.authentication.v1.", "io.k8s.api.authorization.v1."}
	for name, lines := range rule.Marks() {
		if strings.HasSuffix(name, "List") || slices.ContainsFunc(later, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		for f := range lines {
			if !fields[name][f] {
				t.Errorf("the table has a line for %s %s, which no kind has", name, f)
			}
		}
	}
}
