package certificates

import (
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func signingRequests() *resource.Definition {
	// Kubernetes describes the columns in the words of the version before.
	spec, status := certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc(), certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()
	return kind.Kind[certificatesv1.CertificateSigningRequest, certificatesv1.CertificateSigningRequestList]{
		Definition: resource.Definition{
			Group: certificatesv1.GroupName, Plural: "certificatesigningrequests", ShortNames: []string{"csr"},
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		StatusKeeps: "spec",
		Columns: `
			Age
			SignerName         string  .spec.signerName:<none>  signer
			Requestor          string  .spec.username          request
			RequestedDuration  string  duration        .spec.expirationSeconds
			Condition          string  condition       conditions
		`,
		Cells:  kind.Cells{"duration": requestedDuration, "condition": conditionOfRequest},
		Docs:   kind.Docs{"signer": spec["signerName"], "request": spec["request"], "conditions": status["conditions"]},
		Select: "spec.signerName",
	}.New()
}

func requestedDuration(obj map[string]any) any {
	seconds, ok := kind.Value(obj, "spec", "expirationSeconds").(int64)
	if !ok {
		return "<none>"
	}
	return duration.HumanDuration(time.Duration(seconds) * time.Second)
}

func conditionOfRequest(obj map[string]any) any {
	has := map[certificatesv1.RequestConditionType]bool{}
	for _, c := range kind.List(obj, "status", "conditions") {
		condition, _ := c.(map[string]any)
		has[certificatesv1.RequestConditionType(kind.Text(condition, "type"))] = true
	}
	shown := "Pending"
	switch {
	case has[certificatesv1.CertificateDenied]:
		shown = "Denied"
	case has[certificatesv1.CertificateApproved]:
		shown = "Approved"
	}
	if has[certificatesv1.CertificateFailed] {
		shown += ",Failed"
	}
	if kind.Text(obj, "status", "certificate") != "" {
		shown += ",Issued"
	}
	return shown
}
