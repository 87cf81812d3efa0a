package validation

import (
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/check"
	"github.com/anykind/anykind/internal/schema/crd/conditions"
)

// maxSelectable limits the selectable fields of a version.
const maxSelectable = 8

// allowances are rules that an update may break because the replaced definition breaks them too. The
// zero value is for new objects, except for caBundle.
type allowances struct {
	noSchema       bool            // versions without a schema
	noKnownReview  bool            // no conversion review version that the server speaks
	badCABundle    bool            // a CA bundle that cannot be read
	manySelectable map[string]bool // too many selectable fields, by version; "" for all
	rules          storedRules
	schemas        func() check.Tolerance // rules that schemas may break; nil for none
	report         func(*celrule.Report)
}

// from adds the allowances for an update of before.
func (a *allowances) from(is *internalSpec, before *v1.CustomResourceDefinition) {
	was := newInternalSpec(&before.Spec)
	a.manySelectable = map[string]bool{}
	a.rules.from(is, was)
	parts := map[string]*part{"": &was.shared}
	for i := range was.versions {
		v := &before.Spec.Versions[i]
		parts[v.Name] = &was.versions[i]
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			a.noSchema = true
		}
	}
	tooMany := func(name string, p *part) {
		if old := parts[name]; old != nil && len(old.selectable) > maxSelectable && equality.Semantic.DeepEqual(p.selectable, old.selectable) {
			a.manySelectable[name] = true
		}
	}
	tooMany("", &is.shared)
	for i := range is.versions {
		tooMany(is.spec.Versions[i].Name, &is.versions[i])
	}
	a.schemas = toleranceOf(before)
	webhook := webhookOf(before.Spec.Conversion)
	a.noKnownReview = webhook != nil && len(webhook.ConversionReviewVersions) > 0 && !knownReview(webhook.ConversionReviewVersions)
	a.badCABundle = !conditions.IsTrue(&before.Status, v1.Established) || CABundleError(before.Spec.Conversion) != nil
}

// validate checks the whole spec.
func (s *internalSpec) validate(path *field.Path, a allowances) field.ErrorList {
	spec := s.spec
	a.schemas = s.tolerate(a.schemas)
	errs := validateGroup(spec.Group, path.Child("group"))
	errs = append(errs, oneOf(path.Child("scope"), string(spec.Scope), string(v1.ClusterScoped), string(v1.NamespaceScoped))...)
	errs = append(errs, s.validateSchemasThere(path, a)...)
	if spec.PreserveUnknownFields && s.hasDefaults() {
		errs = append(errs, field.Invalid(path.Child("preserveUnknownFields"), true, "must be false in order to use defaults in the schema"))
	}
	errs = append(errs, s.validateVersions(path, a)...)
	errs = append(errs, requireNames(&spec.Names, path.Child("names"))...)
	errs = append(errs, validateNames(&spec.Names, path.Child("names"))...)
	errs = append(errs, s.validateShared(path, a)...)
	if c := spec.Conversion; c != nil && c.Strategy != v1.NoneConverter && spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(path.Child("conversion", "strategy"), c.Strategy, "must be None if spec.preserveUnknownFields is true"))
	}
	return append(errs, validateConversion(spec.Conversion, path.Child("conversion"), a)...)
}

func validateGroup(group string, path *field.Path) field.ErrorList {
	switch errs := utilvalidation.IsDNS1123Subdomain(group); {
	case group == "":
		return field.ErrorList{field.Required(path, "")}
	case len(errs) > 0:
		return field.ErrorList{field.Invalid(path, group, strings.Join(errs, ","))}
	case !strings.Contains(group, "."):
		return field.ErrorList{field.Invalid(path, group, "should be a domain with at least one dot")}
	default:
		return nil
	}
}

func oneOf(path *field.Path, value string, accepted ...string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	for _, a := range accepted {
		if a == value {
			return nil
		}
	}
	return field.ErrorList{field.NotSupported(path, value, accepted)}
}

// validateSchemasThere checks that every version has a schema, at least if unknown fields are pruned.
func (s *internalSpec) validateSchemasThere(path *field.Path, a allowances) (errs field.ErrorList) {
	if s.shared.hasSchema() || a.noSchema && s.spec.PreserveUnknownFields {
		return nil
	}
	for i := range s.versions {
		if s.versions[i].hasSchema() {
			continue
		}
		at := path.Child("versions").Index(i).Child("schema", "openAPIV3Schema")
		switch {
		case !a.noSchema:
			errs = append(errs, field.Required(at, ""))
		case s.spec.Versions[i].Served:
			errs = append(errs, field.Required(at, "because otherwise all fields are pruned"))
		}
	}
	return errs
}

// validateVersions checks each version, and that they go together.
func (s *internalSpec) validateVersions(path *field.Path, a allowances) (errs field.ErrorList) {
	at := path.Child("versions")
	stored, unique, seen := 0, true, map[string]bool{}
	for i := range s.versions {
		v := &s.spec.Versions[i]
		if v.Storage {
			stored++
		}
		unique = unique && !seen[v.Name]
		seen[v.Name] = true
		if bad := utilvalidation.IsDNS1035Label(v.Name); len(bad) > 0 {
			errs = append(errs, field.Invalid(at.Index(i).Child("name"), v.Name, strings.Join(bad, ",")))
		}
		errs = append(errs, s.validateVersion(i, at.Index(i), a)...)
	}
	if !unique {
		errs = append(errs, field.Invalid(at, s.shownVersions(), "must contain unique version names"))
	}
	if stored != 1 {
		errs = append(errs, field.Invalid(at, s.shownVersions(), "must have exactly one version marked as storage version"))
	}
	if len(s.spec.Versions) == 0 {
		return errs
	}
	// The internal form has a field for the name of the first version.
	if first := s.spec.Versions[0].Name; first != "" {
		if bad := utilvalidation.IsDNS1035Label(first); len(bad) > 0 {
			errs = append(errs, field.Invalid(path.Child("version"), first, strings.Join(bad, ",")))
		}
	}
	return errs
}

// validateShared validates the values common to all versions.
func (s *internalSpec) validateShared(path *field.Path, a allowances) field.ErrorList {
	p := &s.shared
	first := ""
	if len(s.spec.Versions) > 0 {
		first = s.spec.Versions[0].Name
	}
	errs := validateSchema(p.schema, s.anyStatus(), path.Child("validation"), a, first)
	errs = append(errs, validateSubresources(p.subresources, path.Child("subresources"))...)
	errs = append(errs, validateColumns(p.columns, path.Child("additionalPrinterColumns"))...)
	if len(p.selectable) == 0 {
		return errs
	}
	at := path.Child("selectableFields")
	if p.schema == nil {
		return append(errs, field.Invalid(at, "", "may only be set when validations.schema is included"))
	}
	return append(errs, validateSelectable(p.selectable, p.schema.OpenAPIV3Schema, path, a.manySelectable[""])...)
}

func requireNames(n *v1.CustomResourceDefinitionNames, path *field.Path) (errs field.ErrorList) {
	for _, f := range []struct{ field, value string }{
		{"plural", n.Plural}, {"singular", n.Singular}, {"kind", n.Kind}, {"listKind", n.ListKind},
	} {
		if f.value == "" {
			errs = append(errs, field.Required(path.Child(f.field), ""))
		}
	}
	return errs
}

// validateNames checks the names that are there.
func validateNames(n *v1.CustomResourceDefinitionNames, path *field.Path) (errs field.ErrorList) {
	label := func(at *field.Path, value string) {
		if bad := utilvalidation.IsDNS1035Label(value); len(bad) > 0 {
			errs = append(errs, field.Invalid(at, value, strings.Join(bad, ",")))
		}
	}
	kind := func(at *field.Path, value string) {
		if bad := utilvalidation.IsDNS1035Label(strings.ToLower(value)); value != "" && len(bad) > 0 {
			errs = append(errs, field.Invalid(at, value, "may have mixed case, but should otherwise match: "+strings.Join(bad, ",")))
		}
	}
	if n.Plural != "" {
		label(path.Child("plural"), n.Plural)
	}
	if n.Singular != "" {
		label(path.Child("singular"), n.Singular)
	}
	kind(path.Child("kind"), n.Kind)
	kind(path.Child("listKind"), n.ListKind)
	for i, s := range n.ShortNames {
		label(path.Child("shortNames").Index(i), s)
	}
	if n.Kind != "" && n.Kind == n.ListKind {
		errs = append(errs, field.Invalid(path.Child("listKind"), n.ListKind, "kind and listKind may not be the same"))
	}
	for i, c := range n.Categories {
		label(path.Child("categories").Index(i), c)
	}
	return errs
}
