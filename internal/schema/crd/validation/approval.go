package validation

import (
	"fmt"
	"net/url"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// protected reports whether a group belongs to the Kubernetes community, so that
// a kind in it needs an approval.
func protected(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// An approval is the meaning of the api-approved annotation.
type approval int

const (
	approvalInvalid approval = iota
	approvalGiven            // the annotation is a URL
	approvalWaived           // "unapproved", perhaps with a reason
	approvalMissing
)

// approvalOf parses the annotation and returns the reason of the result.
func approvalOf(annotations map[string]string) (approval, string) {
	const see = "see https://github.com/kubernetes/enhancements/pull/1111"
	value := annotations[v1.KubeAPIApprovedAnnotation]
	switch {
	case value == "":
		return approvalMissing, fmt.Sprintf("protected groups must have approval annotation %q, %s", v1.KubeAPIApprovedAnnotation, see)
	case strings.HasPrefix(value, "unapproved"):
		return approvalWaived, fmt.Sprintf("not approved: %q", value)
	}
	if u, err := url.ParseRequestURI(value); err == nil && u.Host != "" && u.Scheme != "" {
		return approvalGiven, "approved in " + value
	}
	return approvalInvalid, fmt.Sprintf("protected groups must have approval annotation %q with either a URL or a reason starting with \"unapproved\", %s",
		v1.KubeAPIApprovedAnnotation, see)
}

// ApprovalCondition returns the condition for the approval of a kind, and whether the kind is in a
// protected group and needs one.
func ApprovalCondition(crd *v1.CustomResourceDefinition) (v1.CustomResourceDefinitionCondition, bool) {
	if !protected(crd.Spec.Group) {
		return v1.CustomResourceDefinitionCondition{}, false
	}
	state, message := approvalOf(crd.Annotations)
	c := v1.CustomResourceDefinitionCondition{Type: v1.KubernetesAPIApprovalPolicyConformant, Status: v1.ConditionFalse, Message: message}
	switch state {
	case approvalGiven:
		c.Status, c.Reason = v1.ConditionTrue, "ApprovedAnnotation"
	case approvalWaived:
		c.Reason = "UnapprovedAnnotation"
	case approvalMissing:
		c.Reason = "MissingAnnotation"
	default:
		c.Reason = "InvalidAnnotation"
	}
	return c, true
}
