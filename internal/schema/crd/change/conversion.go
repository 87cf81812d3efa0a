package change

import (
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/conversion"
)

// conversion compares the conversion between versions.
func (c *comparison) conversion(old, now *v1.CustomResourceDefinition) {
	c.version = ""
	was, is := hook(old), hook(now)
	switch {
	case was && !is && len(now.Spec.Versions) > 1:
		c.add(Finding{Severity: Breaking, Path: "spec.conversion", Change: "conversion-removed", What: "the conversion webhook is removed",
			Reason: "Objects keep their fields in all versions, and fields that are unknown in a version are pruned.",
			WayOut: "Keep the webhook until all objects are stored in one version and all clients use it."})
	case !was && is:
		c.add(Finding{Severity: Caution, Path: "spec.conversion", Change: "conversion-added", What: "a webhook converts between versions",
			Reason: "Objects that are stored in another version cannot be read while the webhook is unavailable."})
	}
	c.conversionRules(old, now)
	if is || ruled(now) {
		return
	}
	for _, field := range dropped(now) {
		if !field.in(dropped(old)) {
			c.add(Finding{Severity: Breaking, Version: field.version, Path: field.path, Change: "conversion-loses-field",
				What:   fmt.Sprintf("the storage version %s does not have the field", field.storage),
				Reason: fmt.Sprintf("Without a conversion, values that clients write in %s are pruned before storage.", field.version),
				WayOut: "Add the field to the storage version, or add conversion rules or a webhook."})
		}
	}
}

func hook(d *v1.CustomResourceDefinition) bool {
	return d.Spec.Conversion != nil && d.Spec.Conversion.Strategy == v1.WebhookConverter
}

// ruled reports whether a definition has conversion rules.
func ruled(d *v1.CustomResourceDefinition) bool {
	_, ok := d.Annotations[conversion.Annotation]
	return ok
}

// conversionRules compares conversion rules.
func (c *comparison) conversionRules(old, now *v1.CustomResourceDefinition) {
	was, is := ruled(old), ruled(now)
	const path = "metadata.annotations[" + conversion.Annotation + "]"
	if was && !is && !hook(now) && len(now.Spec.Versions) > 1 {
		c.add(Finding{Severity: Breaking, Path: path, Change: "conversion-removed", What: "the conversion rules are removed",
			Reason: "Objects keep their fields in all versions, and fields that are unknown in a version are pruned.",
			WayOut: "Keep the rules until all objects are stored in one version and all clients use it."})
	}
	if !is {
		return
	}
	report := conversion.CheckOf(now)
	for _, e := range report.Refused() {
		c.add(Finding{Severity: Breaking, Path: e.Field, Change: "conversion-rules-invalid", What: e.ErrorBody(),
			Reason: "A server rejects the definition.", WayOut: "Change the rules with the schemas."})
	}
	for _, p := range report.Pairs {
		if !p.ToHub || !p.ToSpoke {
			c.add(Finding{Severity: Caution, Version: p.Version, Path: path, Change: "conversion-loses",
				What: "the rules acknowledge losses of values", Reason: "An object that is read in one version and written back does not keep all of its values."})
		}
	}
}

// A droppedField is a field of a version that the storage version does not have.
type droppedField struct{ version, storage, path string }

func (f droppedField) in(all []droppedField) bool {
	for _, other := range all {
		if other == f {
			return true
		}
	}
	return false
}

// dropped are the fields that get lost when an object is stored that is not converted.
func dropped(d *v1.CustomResourceDefinition) (all []droppedField) {
	storage := storageOf(d)
	if storage == nil || storage.Schema == nil || hook(d) || ruled(d) {
		return nil
	}
	for i := range d.Spec.Versions {
		v := &d.Spec.Versions[i]
		if v.Storage || !v.Served || v.Schema == nil {
			continue
		}
		missing(v.Schema.OpenAPIV3Schema, storage.Schema.OpenAPIV3Schema, "", func(path string) {
			all = append(all, droppedField{v.Name, storage.Name, path})
		})
	}
	return all
}

// missing calls visit for each field of a that b would drop.
func missing(a, b *v1.JSONSchemaProps, path string, visit func(path string)) {
	if a == nil || b == nil || keepsUnknown(b) {
		return
	}
	for _, name := range sorted(a.Properties) {
		below := a.Properties[name]
		in, ok := b.Properties[name]
		at := join(path, name)
		switch {
		case ok:
			missing(&below, &in, at, visit)
		case b.AdditionalProperties != nil:
			missing(&below, b.AdditionalProperties.Schema, at, visit)
		case path != "" || !ofEveryObject(name):
			visit(at)
		}
	}
	if a.Items != nil && b.Items != nil {
		missing(a.Items.Schema, b.Items.Schema, path+"[]", visit)
	}
	if a.AdditionalProperties != nil && b.AdditionalProperties != nil {
		missing(a.AdditionalProperties.Schema, b.AdditionalProperties.Schema, path+"[*]", visit)
	}
}

// ofEveryObject reports whether a field of the root exists in every schema.
func ofEveryObject(name string) bool {
	return name == "apiVersion" || name == "kind" || name == "metadata"
}
