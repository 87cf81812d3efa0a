package certificates

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func podRequests() *resource.Definition {
	return kind.Kind[certificatesv1.PodCertificateRequest, certificatesv1.PodCertificateRequestList]{
		Definition: resource.Definition{
			Group: certificatesv1.GroupName, Plural: "podcertificaterequests", Namespaced: true,
			StoredAs: schema.GroupVersionKind{Group: certificatesv1.GroupName, Version: "v1beta1", Kind: "PodCertificateRequest"},
		},
		StatusKeeps: "spec",
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
	}.New()
}

func stateOfPodRequest(obj map[string]any) any {
	state := "Pending"
	for _, c := range kind.List(obj, "status", "conditions") {
		condition, _ := c.(map[string]any)
		switch of := kind.Text(condition, "type"); of {
		case certificatesv1.PodCertificateRequestConditionTypeIssued, certificatesv1.PodCertificateRequestConditionTypeDenied, certificatesv1.PodCertificateRequestConditionTypeFailed:
			state = of
		}
	}
	return state
}
