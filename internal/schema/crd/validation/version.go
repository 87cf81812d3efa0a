package validation

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/jsonschema"
)

// validateVersion validates one version by itself.
func (s *internalSpec) validateVersion(i int, path *field.Path, a allowances) (errs field.ErrorList) {
	v, p := &s.spec.Versions[i], &s.versions[i]
	for _, detail := range wrongWarning(v) {
		errs = append(errs, field.Invalid(path.Child("deprecationWarning"), v.DeprecationWarning, detail))
	}
	errs = append(errs, validateSchema(p.schema, s.statusOf(i), path.Child("schema"), a, v.Name)...)
	errs = append(errs, validateSubresources(p.subresources, path.Child("subresources"))...)
	errs = append(errs, validateColumns(p.columns, path.Child("additionalPrinterColumns"))...)
	if len(p.selectable) == 0 {
		return errs
	}
	at := path.Child("selectableFields")
	if !p.hasSchema() {
		return append(errs, field.Invalid(at, "", "may only be set when `version.schema.openAPIV3Schema` is not included"))
	}
	return append(errs, validateSelectable(p.selectable, p.schema.OpenAPIV3Schema, path, a.manySelectable[v.Name])...)
}

// wrongWarning returns the errors of a version's deprecation warning.
func wrongWarning(v *v1.CustomResourceDefinitionVersion) (wrong []string) {
	if v.DeprecationWarning == nil {
		return nil
	}
	if !v.Deprecated {
		return []string{"can only be set for deprecated versions"}
	}
	text := *v.DeprecationWarning
	if len(text) > 256 {
		wrong = append(wrong, "must be <= 256 characters long")
	}
	if text == "" {
		wrong = append(wrong, "must not be an empty string")
	}
	for i, r := range text {
		if !unicode.IsPrint(r) {
			wrong = append(wrong, fmt.Sprintf("must only contain printable UTF-8 characters; non-printable character found at index %d", i))
			break
		}
	}
	if !utf8.ValidString(text) {
		wrong = append(wrong, "must only contain printable UTF-8 characters")
	}
	return wrong
}

// atRoot are the fields that the root of a schema may have beside a status
// subresource, for which the schema of the status is taken out of it.
var atRoot = []string{
	"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum",
	"MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items",
	"Properties", "ExternalDocs", "Example", "XPreserveUnknownFields", "XValidations",
}

// validateSchema checks the schema of a version: its root, and then all of it.
func validateSchema(in *v1.CustomResourceValidation, hasStatus bool, path *field.Path, a allowances, version string) (errs field.ErrorList) {
	if in == nil || in.OpenAPIV3Schema == nil {
		return nil
	}
	props, at := in.OpenAPIV3Schema, path.Child("openAPIV3Schema")
	if hasStatus {
		if err := wrongRoot(props, at); err != nil {
			errs = append(errs, err)
		}
	}
	if props.Nullable {
		errs = append(errs, field.Forbidden(path.Child("openAPIV3Schema.nullable"), "nullable cannot be true at the root"))
	}
	report := checkSchema(props, at, a.rules.of(version), a.schemas)
	if len(report.Estimates) > 0 {
		a.report(report)
	}
	return append(errs, report.Errors...)
}

// wrongRoot returns the first error of the root of a schema with a status subresource.
func wrongRoot(props *v1.JSONSchemaProps, at *field.Path) *field.Error {
	value := reflect.ValueOf(props).Elem()
	for _, name := range jsonschema.GoFields() {
		f := value.FieldByName(name)
		switch {
		case f.IsZero():
		case name == "Type" && props.Type != "object":
			return field.Invalid(field.NewPath(at.String()+".type"), props.Type,
				`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)
		case !slices.Contains(atRoot, name):
			return field.Invalid(at, jsonschema.GoNames{Value: *props},
				fmt.Sprintf("only %v fields are allowed at the root of the schema if the status subresource is enabled", atRoot))
		}
	}
	return nil
}

// validateSubresources checks the paths of the scale subresource.
func validateSubresources(s *v1.CustomResourceSubresources, path *field.Path) (errs field.ErrorList) {
	if s == nil || s.Scale == nil {
		return nil
	}
	check := func(name, value, detail string, prefixes ...string) {
		at := path.Child("scale." + name)
		if bad := simplePath(value, at); len(bad) > 0 {
			errs = append(errs, bad...)
			return
		}
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(value, p) }) {
			errs = append(errs, field.Invalid(at, value, detail))
		}
	}
	required := func(name, value, detail, prefix string) {
		if value == "" {
			errs = append(errs, field.Required(path.Child("scale."+name), ""))
			return
		}
		check(name, value, detail, prefix)
	}
	required("specReplicasPath", s.Scale.SpecReplicasPath, "should be a json path under .spec", ".spec.")
	required("statusReplicasPath", s.Scale.StatusReplicasPath, "should be a json path under .status", ".status.")
	if p := s.Scale.LabelSelectorPath; p != nil && *p != "" {
		check("labelSelectorPath", *p, "should be a json path under either .spec or .status", ".spec.", ".status.")
	}
	return errs
}

func simplePath(s string, path *field.Path) field.ErrorList {
	if s != "" && s[0] != '.' {
		return field.ErrorList{field.Invalid(path, s, "must be a simple json path starting with .")}
	}
	return nil
}

var (
	columnTypes   = []string{"boolean", "date", "integer", "number", "string"}
	columnFormats = []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
)

// validateColumns checks printer columns.
func validateColumns(columns []v1.CustomResourceColumnDefinition, path *field.Path) (errs field.ErrorList) {
	for i := range columns {
		c, at := &columns[i], path.Index(i)
		if c.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		types := "must be one of " + strings.Join(columnTypes, ",")
		if c.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), types))
		} else if !slices.Contains(columnTypes, c.Type) {
			errs = append(errs, field.Invalid(at.Child("type"), c.Type, types))
		}
		if c.Format != "" && !slices.Contains(columnFormats, c.Format) {
			errs = append(errs, field.Invalid(at.Child("format"), c.Format, "must be one of "+strings.Join(columnFormats, ",")))
		}
		if c.JSONPath == "" {
			errs = append(errs, field.Required(at.Child("JSONPath"), ""))
		} else {
			errs = append(errs, simplePath(c.JSONPath, at.Child("JSONPath"))...)
		}
	}
	return errs
}
