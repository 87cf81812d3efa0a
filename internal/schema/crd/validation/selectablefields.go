package validation

import (
	"fmt"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// validateSelectable validates selectable fields at path: each must be a scalar of the schema. A
// schema that does not compile has no fields.
func validateSelectable(in []v1.SelectableField, root *v1.JSONSchemaProps, path *field.Path, anyNumber bool) (errs field.ErrorList) {
	if err := jsonschema.Supported(root); err != nil {
		errs = append(errs, field.Invalid(path.Child("schema.openAPIV3Schema"), "", err.Error()))
		root = nil
	}
	path = path.Child("selectableFields")
	seen := map[string]bool{}
	for i, f := range in {
		at := path.Index(i).Child("jsonPath")
		if f.JSONPath == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		where, found, err := jsonschema.FollowPath(f.JSONPath, root, false)
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
