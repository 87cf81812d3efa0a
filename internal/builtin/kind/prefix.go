package kind

import (
	"context"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// validatesPrefix has the kinds whose updates validate metadata.generateName as a create does. An
// update of another kind accepts any prefix. The validation functions of Kubernetes differ in that
// without a rule.
var validatesPrefix = sets.New(
	"ConfigMap", "Endpoints", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim",
	"Pod", "Secret", "ServiceAccount",
	"CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment", "VolumeAttributesClass",
	"CertificateSigningRequest", "ControllerRevision", "EndpointSlice", "FlowSchema", "IPAddress", "Ingress",
	"IngressClass", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration",
	"PriorityLevelConfiguration", "ResourceClaim", "ResourceClaimTemplate", "RuntimeClass", "StorageVersionMigration",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
)

// validatesPrefixOfStatus has those of them whose updates of the status validate it, too.
var validatesPrefixOfStatus = sets.New("VolumeAttachment")

type validator = func(context.Context, *resource.Change) field.ErrorList

// WithPrefix adds the validation of metadata.generateName in updates to that of a kind or a subresource.
func WithPrefix(validName func(string, bool) []string, validate validator) validator {
	if validName == nil {
		validName = apivalidation.NameIsDNSSubdomain
	}
	return func(ctx context.Context, c *resource.Change) (errs field.ErrorList) {
		checked := c.Old != nil && (c.Subresource != "status" || validatesPrefixOfStatus.Has(object.Kind(c.Object)))
		if prefix := object.MetaString(c.Object, "generateName"); checked && prefix != "" {
			for _, detail := range validName(prefix, true) {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "generateName"), prefix, detail))
			}
		}
		if validate != nil {
			errs = append(errs, validate(ctx, c)...)
		}
		return errs
	}
}
