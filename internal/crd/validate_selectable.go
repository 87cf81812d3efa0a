package crd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateSelectable checks the fields that selectors may name: each must be a
// scalar that the schema has.
func validateSelectable(in []v1.SelectableField, root *v1.JSONSchemaProps, path *field.Path, anyNumber bool) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, f := range in {
		at := path.Index(i).Child("jsonPath")
		if f.JSONPath == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		where, found, err := followPath(f.JSONPath, root)
		if err != nil {
			errs = append(errs, field.Invalid(at, f.JSONPath, fmt.Sprintf("is an invalid path: %v", err)))
			continue
		}
		if where.Root().String() == "metadata" {
			errs = append(errs, field.Invalid(at, f.JSONPath, "must not point to fields in metadata"))
		}
		if found == nil || !slices.Contains([]string{"string", "boolean", "integer"}, found.Type) {
			errs = append(errs, field.Invalid(at, f.JSONPath,
				"must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."))
		}
		if seen[where.String()] {
			errs = append(errs, field.Duplicate(at, f.JSONPath))
		}
		seen[where.String()] = true
	}
	if len(seen) > maxSelectable && !anyNumber {
		errs = append(errs, field.TooMany(path, len(seen), maxSelectable))
	}
	return errs
}

var errNoSuchField = errors.New("does not refer to a valid field")

// followPath returns the schema at the end of a path like .spec.color. A path
// through a map takes any key.
func followPath(path string, props *v1.JSONSchemaProps) (where *field.Path, found *v1.JSONSchemaProps, err error) {
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			return nil, nil, errors.New("array notation is not allowed")
		default:
			return nil, nil, fmt.Errorf("expected [ or . but got: %s", token(path))
		}
		if path == "" {
			return nil, nil, errors.New("unexpected end of JSON path")
		}
		name := token(path)
		path = path[len(name):]
		switch {
		case props != nil && props.Properties != nil:
			p, ok := props.Properties[name]
			if !ok {
				return nil, nil, errNoSuchField
			}
			where, props = where.Child(name), &p
		case props != nil && props.AdditionalProperties != nil:
			where, props = where.Key(name), props.AdditionalProperties.Schema
		default:
			return nil, nil, errNoSuchField
		}
	}
	return where, props, nil
}

// token returns the text before the next delimiter, or the delimiter.
func token(path string) string {
	if i := strings.IndexAny(path, ".[]"); i > 0 {
		return path[:i]
	} else if i == 0 {
		return path[:1]
	}
	return path
}
