package volume

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// ValidateClaim validates the spec of a claim or a claim template at c. old is the replaced spec,
// or nil.
func ValidateClaim(c *rule.Check, spec, old *corev1.PersistentVolumeClaimSpec) {
	c.Fields(spec)
	if len(spec.AccessModes) == 0 {
		c.At("accessModes").Required("at least 1 access mode is required")
	}
	validateAccessModes(c.At("accessModes"), spec.AccessModes)
	anyValue := old != nil && len(metavalidation.ValidateLabelSelector(old.Selector, metavalidation.LabelSelectorValidationOptions{}, nil)) > 0
	c.Add(metavalidation.ValidateLabelSelector(spec.Selector,
		metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: anyValue}, c.At("selector").Path())...)
	at := c.At("resources").AtKey(string(corev1.ResourceStorage))
	if size, ok := spec.Resources.Requests[corev1.ResourceStorage]; !ok {
		at.Required("")
	} else if size.Sign() <= 0 {
		at.Invalid(size.String(), notPositive)
	}
	validateClass(c.At("storageClassName"), spec.StorageClassName)
	validateClass(c.At("volumeAttributesClassName"), spec.VolumeAttributesClassName)
	anyGroup := old != nil && (old.DataSource != nil && old.DataSource.APIGroup != nil || old.DataSourceRef != nil && old.DataSourceRef.APIGroup != nil)
	validateDataSources(c, spec, anyGroup)
}

const notPositive = "must be greater than zero"

// accessModes are the supported access modes, sorted.
var accessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOnce, corev1.ReadWriteOncePod}

func validateAccessModes(c *rule.Check, modes []corev1.PersistentVolumeAccessMode) {
	alone, others := false, false
	for _, m := range modes {
		known := slices.Contains(accessModes, m)
		if !known {
			rule.NotSupported(c, m, accessModes...)
		}
		alone = alone || m == corev1.ReadWriteOncePod
		others = others || known && m != corev1.ReadWriteOncePod
	}
	if alone && others {
		c.Forbidden("may not use ReadWriteOncePod with other access modes")
	}
}

// validateClass validates the name of a class, which may be empty.
func validateClass(c *rule.Check, name *string) {
	if name != nil && *name != "" {
		c.Invalids(*name, validation.IsDNS1123Subdomain(*name))
	}
}

// validateDataSources validates the two data source fields, which must agree.
func validateDataSources(c *rule.Check, spec *corev1.PersistentVolumeClaimSpec, anyGroup bool) {
	s, r := spec.DataSource, spec.DataSourceRef
	if s != nil {
		validateDataSource(c.At("dataSource"), s.APIGroup, s.Kind, s.Name, anyGroup)
	}
	if r == nil {
		return
	}
	validateDataSource(c.At("dataSourceRef"), r.APIGroup, r.Kind, r.Name, anyGroup)
	elsewhere := r.Namespace != nil && *r.Namespace != ""
	if elsewhere {
		c.At("dataSourceRef", "namespace").Invalids(*r.Namespace, apivalidation.ValidateNamespaceName(*r.Namespace, false))
	}
	switch {
	case s == nil:
	case elsewhere:
		c.Invalid(c.At("dataSource").Path(), "may not be specified when dataSourceRef.namespace is specified")
	case !reflect.DeepEqual(s.APIGroup, r.APIGroup) || s.Kind != r.Kind || s.Name != r.Name:
		c.Invalid(c.At("dataSource").Path(), "must match dataSourceRef")
	}
}

func validateDataSource(c *rule.Check, group *string, kind, name string, anyGroup bool) {
	need(c.At("name"), name)
	need(c.At("kind"), kind)
	if group == nil || *group == "" {
		if kind != "PersistentVolumeClaim" {
			c.Invalid(kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
		}
		return
	}
	if !anyGroup {
		c.At("apiGroup").Invalids(*group, validation.IsDNS1123Subdomain(*group))
	}
}

// validateTemplateMeta validates the metadata of a claim template: only labels and annotations.
func validateTemplateMeta(c *rule.Check, meta *metav1.ObjectMeta) {
	c.Add(apivalidation.ValidateAnnotations(meta.Annotations, c.At("annotations").Path())...)
	c.Add(metavalidation.ValidateLabels(meta.Labels, c.At("labels").Path())...)
	v := reflect.ValueOf(*meta)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if name != "Annotations" && name != "Labels" && !v.Field(i).IsZero() {
			c.At(strings.ToLower(name[:1]) + name[1:]).Forbidden("cannot be set")
		}
	}
}

// WarnOfClaim adds warnings about the spec of a claim or a claim template at c.
func WarnOfClaim(c *rule.Check, spec *corev1.PersistentVolumeClaimSpec) {
	warnOfFraction(c.At("resources", "requests"), spec.Resources.Requests)
	warnOfFraction(c.At("resources", "limits"), spec.Resources.Limits)
}

func warnOfFraction(c *rule.Check, list corev1.ResourceList) {
	if size := list[corev1.ResourceStorage]; size.MilliValue()%1000 != 0 {
		c.Warn("%s: fractional byte value %q is invalid, must be an integer", c.AtKey(string(corev1.ResourceStorage)).Path(), size.String())
	}
}
