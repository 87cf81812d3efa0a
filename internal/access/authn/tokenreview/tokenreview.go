// Package tokenreview authenticates bearer tokens by a webhook, with a TokenReview.
//
// It knows both versions of TokenReview. It caches no answers: authn.TokenCache does.
package tokenreview

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
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
	if version == "v1" || version == "v1beta1" {
		return nil
	}
	return fmt.Errorf(`unsupported authentication webhook version %q, supported versions are "v1", "v1beta1"`, version)
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

// ask sends a review. Its fields are the same in both versions.
func (w *Webhook) ask(ctx context.Context, token string, audiences []string) (*authenticationv1.TokenReviewStatus, error) {
	var out authenticationv1.TokenReview
	in := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
	kind := schema.GroupVersionKind{Group: authenticationv1.GroupName, Version: w.version, Kind: "TokenReview"}
	err := w.server.Post(ctx, kind, in, &out)
	return &out.Status, err
}

func userOf(info authenticationv1.UserInfo) *request.User {
	return &request.User{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: request.ExtraAs[[]string](info.Extra)}
}
