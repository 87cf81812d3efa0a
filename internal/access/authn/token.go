package authn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/object/request"
)

// ErrInvalidToken says that a token is not one of ours, and no more: what is wrong with it is
// nobody's business.
var ErrInvalidToken = errors.New("invalid bearer token")

// A TokenAuthenticator knows users by one kind of bearer token.
type TokenAuthenticator interface {
	// AuthenticateToken finds the user of a bearer token. audiences are those that the token
	// should be for; nil means those of the server. ok is false if it is not a token of this
	// kind; an error says that it is, and that it is not good.
	AuthenticateToken(ctx context.Context, token string, audiences []string) (a *TokenAnswer, ok bool, err error)
}

// A TokenAnswer says whose a token is, and for which of the wanted audiences. It is shared
// between requests and not changed.
type TokenAnswer struct {
	User      *request.User
	Audiences []string
}

// Tokens are all kinds of bearer tokens that a server knows.
type Tokens struct {
	kinds []TokenAuthenticator
}

// Use says which kinds there are, in the order in which they are asked. It is called before
// the first token is.
func (t *Tokens) Use(kinds ...TokenAuthenticator) { t.kinds = kinds }

// Empty reports whether there is no kind of token.
func (t *Tokens) Empty() bool { return len(t.kinds) == 0 }

// AuthenticateToken implements TokenAuthenticator. The first kind that knows the token counts,
// and its user is in the group of all who are known. If none does, the error has what each of
// them found wrong with it.
func (t *Tokens) AuthenticateToken(ctx context.Context, token string, audiences []string) (*TokenAnswer, bool, error) {
	var errs []error
	for _, kind := range t.kinds {
		a, ok, err := kind.AuthenticateToken(ctx, token, audiences)
		switch {
		case err != nil:
			errs = append(errs, err)
		case ok:
			return a.known(), true, nil
		}
	}
	if len(errs) == 0 {
		return nil, false, nil
	}
	return nil, false, utilerrors.NewAggregate(errs)
}

// known adds the group of those who are known.
func (a *TokenAnswer) known() *TokenAnswer {
	u := known(a.User)
	if u == a.User {
		return a
	}
	return &TokenAnswer{User: u, Audiences: a.Audiences}
}

// ForServer makes tokens that say nothing of audiences be for those of the server.
func ForServer(audiences []string, tokens TokenAuthenticator) TokenAuthenticator {
	return &forServer{audiences, tokens}
}

type forServer struct {
	audiences []string
	tokens    TokenAuthenticator
}

func (f *forServer) AuthenticateToken(ctx context.Context, token string, audiences []string) (*TokenAnswer, bool, error) {
	found := f.audiences
	if audiences != nil {
		if found = Intersect(f.audiences, audiences); len(found) == 0 {
			return nil, false, nil
		}
	}
	a, ok, err := f.tokens.AuthenticateToken(ctx, token, nil)
	if err != nil || !ok {
		return nil, false, err
	}
	if len(a.Audiences) > 0 {
		return nil, false, fmt.Errorf("audience agnostic authenticator wrapped an authenticator that returned audiences: %q", a.Audiences)
	}
	if len(found) == 0 {
		return a, true, nil
	}
	return &TokenAnswer{User: a.User, Audiences: found}, true, nil
}

// Intersect returns the audiences among wanted that are also in have, in the order of wanted.
func Intersect(have, wanted []string) []string {
	var both []string
	for _, w := range wanted {
		if slices.Contains(have, w) {
			both = append(both, w)
		}
	}
	return both
}
