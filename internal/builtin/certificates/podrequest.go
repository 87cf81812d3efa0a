package certificates

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// podRequests are described in v1beta1, the storage version. It has all fields of v1.
func podRequests() *resource.Definition {
	return kind.Kind[*certificatesv1beta1.PodCertificateRequest, *certificatesv1beta1.PodCertificateRequestList]{
		Definition: resource.Definition{
			Group: certificatesv1.GroupName, Plural: "podcertificaterequests", Namespaced: true, NoNamespaceLabel: true,
			Gate: gate.PodCertificateRequest,
		},
		Version:     &resource.Version{Name: "v1beta1", Storage: true},
		StatusKeeps: "spec metadata",
		Validate:    validatePodRequest, ValidateStatus: validateIssued,
		Columns: `
			PodName                    string       .spec.podName
			ServiceAccountName         string       .spec.serviceAccountName
			NodeName                   string       .spec.nodeName
			SignerName                 string       .spec.signerName
			State                      string       state        "Is the request Pending, Issued, Denied, or Failed?"
			UnverifiedUserAnnotations  string       annotations  .spec.unverifiedUserAnnotations
		`,
		Cells: kind.Cells{
			"state": stateOfPodRequest,
			"annotations": func(obj map[string]any) any {
				return labels.FormatLabels(kind.Pairs(obj, "spec", "unverifiedUserAnnotations"))
			},
		},
		Select: "spec.signerName spec.podName spec.nodeName",
	}.New(kind.Shaped[*certificatesv1.PodCertificateRequest, *certificatesv1.PodCertificateRequestList]("v1", addProof, dropProof))
}

// proof are the fields that v1 lacks: a public key and a proof of possession.
var proof = []string{"pkixPublicKey", "proofOfPossession"}

// addProof converts a request to v1beta1, with empty fields.
func addProof(obj map[string]any) {
	spec := kind.Child(obj, "spec")
	for _, name := range proof {
		if _, ok := spec[name]; !ok {
			spec[name] = nil
		}
	}
}

// dropProof converts a request to v1.
func dropProof(obj map[string]any) {
	for _, name := range proof {
		delete(kind.Tree(obj, "spec"), name)
	}
}

func stateOfPodRequest(obj map[string]any) any {
	state := "Pending"
	for _, c := range kind.List(obj, "status", "conditions") {
		condition, _ := c.(map[string]any)
		switch of := kind.Text(condition, "type"); of {
		case certificatesv1beta1.PodCertificateRequestConditionTypeIssued, certificatesv1beta1.PodCertificateRequestConditionTypeDenied, certificatesv1beta1.PodCertificateRequestConditionTypeFailed:
			state = of
		}
	}
	return state
}

// validatePodRequest allows no change of the spec.
func validatePodRequest(c *rule.Check, r, old *certificatesv1beta1.PodCertificateRequest) {
	if old != nil {
		if !equality.Semantic.DeepEqual(r.Spec, old.Spec) {
			c.At("spec").Invalid(r.Spec, apivalidation.FieldImmutableErrorMsg)
		}
		return
	}
	spec := &r.Spec
	c = c.At("spec")
	kind.ValidateSignerName(c.At("signerName"), spec.SignerName)
	validateUserAnnotations(c.At("unverifiedUserAnnotations"), spec.UnverifiedUserAnnotations)
	c.At("podName").Invalids(spec.PodName, apivalidation.NameIsDNSSubdomain(spec.PodName, false))
	validateUID(c.At("podUID"), spec.PodUID)
	c.At("serviceAccountName").Invalids(spec.ServiceAccountName, apivalidation.ValidateServiceAccountName(spec.ServiceAccountName, false))
	validateUID(c.At("serviceAccountUID"), spec.ServiceAccountUID)
	c.At("nodeName").Invalids(spec.NodeName, apivalidation.NameIsDNSSubdomain(string(spec.NodeName), false))
	validateUID(c.At("nodeUID"), spec.NodeUID)
	validateExpiration(c.At("maxExpirationSeconds"), spec)
	if spec.MaxExpirationSeconds != nil {
		validateKey(c, spec)
	}
}

func validateUserAnnotations(c *rule.Check, annotations map[string]string) {
	for _, key := range kind.SortedKeys(annotations) {
		c.Add(validation.IsDomainPrefixedKey(c.Path(), strings.ToLower(key))...)
	}
	if apivalidation.ValidateAnnotationsSize(annotations) != nil {
		c.TooLong(apivalidation.TotalAnnotationSizeLimitB)
	}
}

func validateUID(c *rule.Check, uid types.UID) {
	const max = 128
	if uid == "" {
		c.Invalid(uid, "must not be empty")
	}
	if len(uid) > max {
		c.TooLong(max)
	}
}

const (
	hour = 60 * 60
	day  = 24 * hour
)

// validateExpiration validates the requested lifetime: at most a day for signers of Kubernetes.
func validateExpiration(c *rule.Check, spec *certificatesv1beta1.PodCertificateRequestSpec) {
	if spec.MaxExpirationSeconds == nil {
		c.Required("must be set")
		return
	}
	domain, _, _ := strings.Cut(spec.SignerName, "/")
	max := 91 * day
	if domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") {
		max = day
	}
	if n := int(*spec.MaxExpirationSeconds); n < hour || n > max {
		c.Add(field.Invalid(c.Path(), spec.MaxExpirationSeconds, rangeOf(hour, max)))
	}
}
