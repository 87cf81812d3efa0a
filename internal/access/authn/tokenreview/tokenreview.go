// Package tokenreview authenticates bearer tokens by a webhook, with a TokenReview.
//
// It knows both versions of TokenReview. It caches no answers: authn.TokenCache does.
package tokenreview

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/review"
	"github.com/anykind/anykind/internal/object/request"
)

// Poster sends a review and decodes the response.
type Poster interface {
	Post(ctx context.Context, kind schema.GroupVersionKind, in, out review.Object) error
}

// Webhook authenticates tokens by another server. It implements authn.TokenAuthenticator.
type Webhook struct {
	server    Poster
	version   string
	audiences []string
}

var _ authn.TokenAuthenticator = (*Webhook)(nil)

// CheckVersion validates a version of TokenReview.
func CheckVersion(version string) error {
	v1, v1beta1 := authenticationv1.SchemeGroupVersion.Version, authenticationv1beta1.SchemeGroupVersion.Version
	if version == v1 || version == v1beta1 {
		return nil
	}
	return fmt.Errorf("unsupported authentication webhook version %q, supported versions are %q, %q", version, v1, v1beta1)
}

// New returns a Webhook that sends reviews in a version. audiences are the audiences of this server.
func New(server Poster, version string, audiences []string) *Webhook {
	return &Webhook{server, version, audiences}
}

// AuthenticateToken implements authn.TokenAuthenticator. A response without audiences is for those
// of this server.
func (w *Webhook) AuthenticateToken(ctx context.Context, token string, audiences []string) (*authn.TokenAnswer, bool, error) {
	if audiences == nil {
		audiences = w.audiences
	}
	status, err := w.ask(ctx, token, audiences)
	if err != nil {
		return nil, false, err
	}
	var found []string
	if len(audiences) > 0 {
		of := w.audiences
		if len(status.Audiences) > 0 {
			of = status.Audiences
		}
		if found = authn.Intersect(of, audiences); len(found) == 0 {
			return nil, false, nil
		}
	}
	switch {
	case status.Authenticated:
		return &authn.TokenAnswer{User: userOf(status.User), Audiences: found}, true, nil
	case status.Error != "":
		return nil, false, errors.New(status.Error)
	default:
		return nil, false, nil
	}
}

func (w *Webhook) ask(ctx context.Context, token string, audiences []string) (*authenticationv1.TokenReviewStatus, error) {
	spec := authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}
	if w.version == authenticationv1.SchemeGroupVersion.Version {
		var out authenticationv1.TokenReview
		err := w.server.Post(ctx, authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), &authenticationv1.TokenReview{Spec: spec}, &out)
		return &out.Status, err
	}
	var out authenticationv1beta1.TokenReview
	in := &authenticationv1beta1.TokenReview{Spec: authenticationv1beta1.TokenReviewSpec(spec)}
	if err := w.server.Post(ctx, authenticationv1beta1.SchemeGroupVersion.WithKind("TokenReview"), in, &out); err != nil {
		return nil, err
	}
	s := out.Status
	status := &authenticationv1.TokenReviewStatus{
		Authenticated: s.Authenticated, Audiences: s.Audiences, Error: s.Error,
		User: authenticationv1.UserInfo{
			Username: s.User.Username, UID: s.User.UID, Groups: s.User.Groups,
			Extra: request.ExtraAs[authenticationv1.ExtraValue](s.User.Extra),
		},
	}
	return status, nil
}

func userOf(info authenticationv1.UserInfo) *request.User {
	return &request.User{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: request.ExtraAs[[]string](info.Extra)}
}
