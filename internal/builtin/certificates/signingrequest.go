package certificates

import (
	"context"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

func signingRequests(m *Metrics) *resource.Definition {
	// Kubernetes documents the columns as in v1beta1.
	spec, status := certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc(), certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()
	verbs := []string{"get", "patch", "update"}
	return kind.Kind[*certificatesv1.CertificateSigningRequest, *certificatesv1.CertificateSigningRequestList]{
		Definition: resource.Definition{
			Group: certificatesv1.GroupName, Plural: "certificatesigningrequests", ShortNames: []string{"csr"},
			Strategy: resource.Strategy{
				AllowUnconditionalUpdate: true,
				ValidateName:             func(name string, _ bool) []string { return content.IsPathSegmentName(name) },
				Wrote:                    m.wrote,
			},
		},
		Version: &resource.Version{
			ResetFields: []string{"spec", "status"},
			Revert:      revertRequest,
			Subresources: []resource.Subresource{
				{
					Name: "approval", Verbs: verbs, Fields: []string{"metadata", "status.conditions"}, NoTable: true,
					Revert: resource.Changing(revertToConditions),
				},
				{Name: "status", Verbs: verbs, Fields: []string{"metadata", "status.certificate"}, Revert: resource.Changing(revertToStatus)},
			},
		},
		Validate: validateRequest,
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

// revertRequest sets the user of a new request. The spec of an existing one cannot change.
func revertRequest(ctx context.Context, c *resource.Change) {
	if c.Old != nil {
		kind.Put(c.Object, "spec", c.Old["spec"])
		kind.Put(c.Object, "status", c.Old["status"])
		return
	}
	c.Object["status"] = map[string]any{}
	spec := kind.Child(c.Object, "spec")
	for _, name := range []string{"username", "uid", "groups", "extra"} {
		delete(spec, name)
	}
	user := request.UserFrom(ctx)
	if user == nil {
		return
	}
	if user.Name != "" {
		spec["username"] = user.Name
	}
	if user.UID != "" {
		spec["uid"] = user.UID
	}
	if len(user.Groups) > 0 {
		spec["groups"] = texts(user.Groups)
	}
	if len(user.Extra) > 0 {
		extra := map[string]any{}
		for key, values := range user.Extra {
			extra[key] = texts(values)
		}
		spec["extra"] = extra
	}
}

func texts(of []string) []any {
	out := make([]any, len(of))
	for i, s := range of {
		out[i] = s
	}
	return out
}

// revertToConditions reverts all fields except the conditions.
func revertToConditions(obj, old map[string]any) {
	conditions := kind.List(obj, "status", "conditions")
	kind.Put(obj, "spec", old["spec"])
	kind.Put(obj, "status", old["status"])
	status := kind.Child(obj, "status")
	if conditions == nil {
		delete(status, "conditions")
		return
	}
	status["conditions"] = conditions
	stamp(conditions, kind.List(old, "status", "conditions"))
}

// revertToStatus reverts the spec, and the conditions of the approval. If their number has changed,
// validation rejects the update.
func revertToStatus(obj, old map[string]any) {
	kind.Put(obj, "spec", old["spec"])
	now, was := kind.List(obj, "status", "conditions"), kind.List(old, "status", "conditions")
	for _, of := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied} {
		at, from := places(now, of), places(was, of)
		if len(at) != len(from) {
			continue
		}
		for i := range at {
			now[at[i]] = object.Clone(was[from[i]])
		}
	}
	stamp(now, was)
}

// places returns the indexes of the conditions of a type.
func places(conditions []any, of certificatesv1.RequestConditionType) (at []int) {
	for i, c := range conditions {
		if condition, _ := c.(map[string]any); kind.Text(condition, "type") == string(of) {
			at = append(at, i)
		}
	}
	return at
}

// stamp sets missing times of conditions.
func stamp(conditions, old []any) {
	now := object.Timestamp(time.Now())
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		if condition == nil {
			continue
		}
		kind.SetMissing(condition, "lastUpdateTime", now)
		if condition["lastTransitionTime"] != nil {
			continue
		}
		since := now
		i := slices.IndexFunc(old, func(o any) bool {
			was, _ := o.(map[string]any)
			return kind.Text(was, "type") == kind.Text(condition, "type") && kind.Text(was, "status") == kind.Text(condition, "status") &&
				kind.Text(was, "lastTransitionTime") != ""
		})
		if i >= 0 {
			since = kind.Text(old[i].(map[string]any), "lastTransitionTime")
		}
		condition["lastTransitionTime"] = since
	}
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
