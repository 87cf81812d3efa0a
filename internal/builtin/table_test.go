package builtin

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/model"
)

// Every line of the table applies to a Go type of a kind, except lists and kinds that are not
// served yet.
func TestTableIsAboutTypes(t *testing.T) {
	fields := map[string]map[string]bool{}
	var read func(reflect.Type)
	read = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
			of = of.Elem()
		}
		name := model.NameOf(of.PkgPath(), of.Name())
		if of.Kind() != reflect.Struct || fields[name] != nil {
			return
		}
		fields[name] = map[string]bool{"": true}
		for f := range gotype.Fields(of) {
			fields[name][f.JSONName] = true
			read(f.Type)
		}
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
