// Package authentication has the review kinds of the group authentication.k8s.io. They are not
// stored.
package authentication

import (
	"context"
	"errors"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// Users authenticate tokens.
type Users struct {
	Tokens authn.TokenAuthenticator
	// Audiences are the audiences of the server.
	Audiences []string
}

// Definitions returns the kinds of the group.
func Definitions(users Users) []*resource.Definition {
	return []*resource.Definition{
		review[authenticationv1.SelfSubjectReview]("SelfSubjectReview", reviewSelf),
		review[authenticationv1.TokenReview]("TokenReview", users.review),
	}
}

func review[T any](name string, answer kind.Answering[T]) *resource.Definition {
	singular := strings.ToLower(name)
	return kind.New(resource.Definition{
		Group: authenticationv1.GroupName, Plural: singular + "s", Singular: singular, Kind: name, Verbs: []string{"create"},
	}, kind.UnlistedOf[*T](&resource.Version{Name: "v1", Creater: answer}))
}

// reviewSelf returns the user of the request.
func reviewSelf(ctx context.Context, _ *resource.Change, _ *authenticationv1.SelfSubjectReview) (*authenticationv1.SelfSubjectReview, error) {
	u := request.UserFrom(ctx)
	if u == nil {
		return nil, status.BadRequest("no user present on request")
	}
	return &authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now())},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: u.Info()},
	}, nil
}

// review returns the user of a token.
func (u Users) review(ctx context.Context, _ *resource.Change, r *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	if r.Spec.Token == "" {
		return nil, status.BadRequest("token is required for TokenReview in authentication")
	}
	wanted := r.Spec.Audiences
	if len(wanted) == 0 {
		wanted = u.Audiences
	}
	answer, ok, err := u.authenticate(ctx, r.Spec.Token, wanted)
	r.Status.Authenticated = ok // As in kube-apiserver, the other status fields of the request stay.
	switch {
	case err != nil:
		// kube-apiserver first tries its own loopback token.
		r.Status.Error = utilerrors.NewAggregate([]error{authn.ErrInvalidToken, err}).Error()
	case len(wanted) > 0 && len(authn.Intersect(answer.Audiences, wanted)) == 0:
		return nil, status.Internal(errors.New("error validating audiences"))
	default:
		r.Status.User, r.Status.Audiences = answer.User.Info(), answer.Audiences
	}
	return r, nil
}

// authenticate authenticates a token like one in a header. The error is not nil if no authenticator
// accepts it.
func (u Users) authenticate(ctx context.Context, token string, audiences []string) (*authn.TokenAnswer, bool, error) {
	token, _, _ = strings.Cut(token, " ") // in a header the token ends at a space
	answer, ok, err := u.Tokens.AuthenticateToken(ctx, token, audiences)
	if err == nil && !ok {
		err = authn.ErrInvalidToken
	}
	return answer, ok, err
}
