package validation

import (
	"fmt"
	"maps"
	"slices"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/format"
)

// Warnings returns warnings of likely mistakes in the schemas of a CustomResourceDefinition, except
// for those that the replaced one has as well. It reads trees, because it needs two fields of each
// schema, and decoding into the Go type takes much longer.
func Warnings(obj, old map[string]any) (warnings []string) {
	if old != nil && object.Equal(obj["spec"], old["spec"]) {
		return nil
	}
	var is, was doubts
	is.definition(obj)
	was.definition(old)
	for _, format := range is.formats {
		if !slices.Contains(was.formats, format) {
			warnings = append(warnings, fmt.Sprintf("unrecognized format %q", format))
		}
	}
	for _, items := range slices.Sorted(maps.Keys(is.sets)) {
		if !was.sets[items] {
			warnings = append(warnings, fmt.Sprintf(
				"x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", items))
		}
	}
	return warnings
}

// doubts are keywords without an effect.
type doubts struct {
	formats []string        // that are not enforced, in order
	sets    map[string]bool // the types of indistinguishable items of sets
}

func (d *doubts) definition(obj object.Tree) {
	spec, _ := obj["spec"].(object.Tree)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		v, _ := v.(object.Tree)
		s, _ := v["schema"].(object.Tree)
		d.schema(s["openAPIV3Schema"])
	}
}

// schema visits a schema and all inside it. Other values are skipped.
func (d *doubts) schema(v any) {
	s, ok := v.(object.Tree)
	if !ok {
		return
	}
	typ, _ := s["type"].(string)
	if name, _ := s["format"].(string); name != "" && !format.Enforced(typ, name) && !slices.Contains(d.formats, name) {
		d.formats = append(d.formats, name)
	}
	if s["x-kubernetes-list-type"] == "set" {
		items, _ := s["items"].(object.Tree)
		if t := items["type"]; t == "object" || t == "array" {
			if d.sets == nil {
				d.sets = map[string]bool{}
			}
			d.sets[t.(string)] = true
		}
	}
	d.schema(s["items"])
	for _, junctor := range []string{"allOf", "anyOf", "oneOf"} {
		schemas, _ := s[junctor].([]any)
		for _, s := range schemas {
			d.schema(s)
		}
	}
	d.schema(s["not"])
	properties, _ := s["properties"].(object.Tree)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		d.schema(properties[name])
	}
	d.schema(s["additionalProperties"])
}
