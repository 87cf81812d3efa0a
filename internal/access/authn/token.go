package authn

import (
	"context"
	"errors"
	"fmt"
	"slices"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/object/request"
)

// ErrInvalidToken reports an invalid token without a reason: clients learn no details.
var ErrInvalidToken = errors.New("invalid bearer token")

// A TokenAuthenticator authenticates by one type of bearer token.
type TokenAuthenticator interface {
	// AuthenticateToken returns the user of a bearer token. audiences are the wanted audiences; nil
	// is those of the server. ok is false for a token of another type; an error reports an invalid
	// token of this type.
	AuthenticateToken(ctx context.Context, token string, audiences []string) (a *TokenAnswer, ok bool, err error)
}

// A TokenAnswer has the user of a token and the matching audiences. Requests share it: it is
// immutable.
type TokenAnswer struct {
	User      *request.User
	Audiences []string
}

// Tokens authenticates by all types of bearer tokens.
type Tokens struct {
	kinds []TokenAuthenticator
}

// Use sets the authenticators, in order, before the first token arrives.
func (t *Tokens) Use(kinds ...TokenAuthenticator) { t.kinds = kinds }

// Empty reports whether there is no authenticator.
func (t *Tokens) Empty() bool { return len(t.kinds) == 0 }

// AuthenticateToken implements TokenAuthenticator. The first authenticator to recognize the token
// wins, and the user gets the group system:authenticated. If none does, the error joins all errors.
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

// known adds the group system:authenticated.
func (a *TokenAnswer) known() *TokenAnswer {
	u := known(a.User)
	if u == a.User {
		return a
	}
	return &TokenAnswer{User: u, Audiences: a.Audiences}
}

// ForServer gives tokens without audiences the audiences of the server.
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
