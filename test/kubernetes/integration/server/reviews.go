package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Reviews are an authenticator and an authorizer of a test, which a server calls as webhooks. Either
// may be nil.
type Reviews struct {
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
}

// Serve serves reviews until stop is called. It returns the kubeconfig for the server.
func (r Reviews) Serve(dir string) (file string, stop func(), err error) {
	s := httptest.NewServer(http.HandlerFunc(r.serve))
	file = filepath.Join(dir, "reviews.kubeconfig")
	config := fmt.Sprintf(`{"clusters":[{"name":"test","cluster":{"server":%q}}],"contexts":[{"name":"test","context":{"cluster":"test"}}],"current-context":"test"}`, s.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		s.Close()
		return "", nil, err
	}
	return file, s.Close, nil
}

// serve responds to both kinds of reviews, which it tells apart by their kind.
func (r Reviews) serve(w http.ResponseWriter, asked *http.Request) {
	var review struct {
		metav1.TypeMeta
		Spec json.RawMessage
	}
	err := json.NewDecoder(asked.Body).Decode(&review)
	var answer any
	switch {
	case err != nil:
	case review.Kind == "TokenReview" && r.Authenticator != nil:
		t := authenticationv1.TokenReview{TypeMeta: review.TypeMeta}
		if err = json.Unmarshal(review.Spec, &t.Spec); err == nil {
			t.Status = r.authenticate(asked, t.Spec)
		}
		answer = t
	case review.Kind == "SubjectAccessReview" && r.Authorizer != nil:
		a := authorizationv1.SubjectAccessReview{TypeMeta: review.TypeMeta}
		if err = json.Unmarshal(review.Spec, &a.Spec); err == nil {
			a.Status = r.authorize(asked, a.Spec)
		}
		answer = a
	default:
		err = fmt.Errorf("no handler for a %s", review.Kind)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

func (r Reviews) authenticate(asked *http.Request, spec authenticationv1.TokenReviewSpec) (status authenticationv1.TokenReviewStatus) {
	with := asked.Clone(asked.Context())
	with.Header = http.Header{"Authorization": {"Bearer " + spec.Token}}
	found, ok, err := r.Authenticator.AuthenticateRequest(with)
	if err != nil {
		status.Error = err.Error()
	}
	if !ok || err != nil {
		return status
	}
	status.Authenticated, status.Audiences = true, found.Audiences
	if len(status.Audiences) == 0 {
		status.Audiences = spec.Audiences
	}
	status.User = authenticationv1.UserInfo{Username: found.User.GetName(), UID: found.User.GetUID(), Groups: found.User.GetGroups(), Extra: map[string]authenticationv1.ExtraValue{}}
	for key, values := range found.User.GetExtra() {
		status.User.Extra[key] = values
	}
	return status
}

func (r Reviews) authorize(asked *http.Request, spec authorizationv1.SubjectAccessReviewSpec) (status authorizationv1.SubjectAccessReviewStatus) {
	who := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups, Extra: map[string][]string{}}
	for key, values := range spec.Extra {
		who.Extra[key] = values
	}
	what := authorizer.AttributesRecord{User: who}
	if a := spec.ResourceAttributes; a != nil {
		what.ResourceRequest = true
		what.Verb, what.Namespace, what.Name = a.Verb, a.Namespace, a.Name
		what.APIGroup, what.APIVersion, what.Resource, what.Subresource = a.Group, a.Version, a.Resource, a.Subresource
	}
	if a := spec.NonResourceAttributes; a != nil {
		what.Verb, what.Path = a.Verb, a.Path
	}
	decision, reason, err := r.Authorizer.Authorize(asked.Context(), what)
	status.Allowed, status.Denied, status.Reason = decision == authorizer.DecisionAllow, decision == authorizer.DecisionDeny, reason
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status
}
