package dra

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// validateClassName validates a name, but not the prefix of generateName, by the rule of the Go
// type.
func validateClassName(name string, prefix bool) []string {
	if prefix {
		return nil
	}
	return content.IsDNS1123Subdomain(name)
}

func validateClass(c *rule.Check, class, old *resourcev1.DeviceClass) {
	c = c.At("spec")
	var was *resourcev1.DeviceClassSpec
	if old != nil {
		was = &old.Spec
	}
	merged(c, resourcev1.Validate_DeviceClassSpec, &class.Spec, was, func(own *rule.Check) {
		validateClassSpec(own.At("spec"), &class.Spec, was)
	})
}

func validateClassSpec(c *rule.Check, spec, old *resourcev1.DeviceClassSpec) {
	validateSelectors(c.At("selectors"), spec.Selectors, old != nil && equality.Semantic.DeepEqual(spec.Selectors, old.Selectors))
	stored := old != nil && equality.Semantic.DeepEqual(spec.Config, old.Config)
	if at := c.At("config"); !tooMany(at, len(spec.Config), resourcev1.DeviceConfigMaxSize, true) {
		for i := range spec.Config {
			validateConfiguration(at.At(i), spec.Config[i].DeviceConfiguration, stored)
		}
	}
	if name := spec.ExtendedResourceName; name != nil && !kind.IsExtended(corev1.ResourceName(*name)) {
		err := field.Invalid(c.At("extendedResourceName").Path(), *name, "must be a valid extended resource name")
		c.Add(err.MarkCoveredByDeclarative().WithOrigin("format=k8s-extended-resource-name"))
	}
}

// validateTemplate allows no change of the spec.
func validateTemplate(c *rule.Check, t, old *resourcev1.ResourceClaimTemplate) {
	c = c.At("spec")
	var was *resourcev1.ResourceClaimTemplateSpec
	if old != nil {
		was = &old.Spec
	}
	merged(c, resourcev1.Validate_ResourceClaimTemplateSpec, &t.Spec, was, func(own *rule.Check) {
		own = own.At("spec")
		validateTemplateMeta(own.At("metadata"), &t.Spec.ObjectMeta)
		validateClaimSpec(own.At("spec"), &t.Spec.Spec)
		if was != nil && !equality.Semantic.DeepEqual(t.Spec, *was) {
			// As in Kubernetes, errors show metadata without field names.
			own.Invalid(struct {
				metav1.ObjectMeta
				Spec any
			}{t.Spec.ObjectMeta, rule.Shown(t.Spec.Spec)}, apivalidation.FieldImmutableErrorMsg)
		}
	})
}

// validateTemplateMeta validates the metadata for claims: only labels and annotations.
func validateTemplateMeta(c *rule.Check, meta *metav1.ObjectMeta) {
	c.Add(apivalidation.ValidateAnnotations(meta.Annotations, c.At("annotations").Path())...)
	c.Add(metavalidation.ValidateLabels(meta.Labels, c.At("labels").Path())...)
	set := []struct {
		name  string
		isSet bool
	}{
		{"name", meta.Name != ""}, {"generateName", meta.GenerateName != ""}, {"namespace", meta.Namespace != ""},
		//lint:ignore SA1019 old clients send it
		{"selfLink", meta.SelfLink != ""}, {"uID", meta.UID != ""}, {"resourceVersion", meta.ResourceVersion != ""},
		{"generation", meta.Generation != 0}, {"creationTimestamp", !meta.CreationTimestamp.IsZero()},
		{"deletionTimestamp", meta.DeletionTimestamp != nil}, {"deletionGracePeriodSeconds", meta.DeletionGracePeriodSeconds != nil},
		{"ownerReferences", meta.OwnerReferences != nil}, {"finalizers", meta.Finalizers != nil},
		{"managedFields", meta.ManagedFields != nil},
	}
	for _, f := range set {
		if f.isSet {
			c.At(f.name).Forbidden("cannot be set")
		}
	}
}
