// Package bootstraptoken knows nodes that join, by the bootstrap tokens in Secrets.
//
// It knows what such a Secret says, of which the controllers for bootstrap tokens learn here, too. It
// remembers none, so one that is deleted or changed is so for the next request.
package bootstraptoken

import (
	"context"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/object/request"
)

// Namespace is where the Secrets are.
const Namespace = "kube-system"

const (
	userPrefix = "system:bootstrap:" // the id follows
	group      = "system:bootstrappers"
)

// groupPattern is what groups of its own a token may add. To compile it would cost every start
// a millisecond.
const groupPattern = `\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`

// mayAdd reports whether a group matches groupPattern.
func mayAdd(name string) bool {
	const longest = 256
	own, ok := strings.CutPrefix(name, group+":")
	if !ok || own == "" || len(own) > longest || !plain(own[len(own)-1:]) {
		return false
	}
	return plain(strings.NewReplacer(":", "", "-", "").Replace(own))
}

// Tokens knows users by bootstrap tokens. It implements authn.TokenAuthenticator.
type Tokens struct {
	// Read returns the Secret of a name in the Namespace as it is stored now, as JSON, or nil
	// if there is none.
	Read func(ctx context.Context, name string) ([]byte, error)
	Log  *slog.Logger
}

var _ authn.TokenAuthenticator = (*Tokens)(nil)

// AuthenticateToken implements authn.TokenAuthenticator. Why a token does not count is only
// told to the log.
func (t *Tokens) AuthenticateToken(ctx context.Context, token string, _ []string) (*authn.TokenAnswer, bool, error) {
	id, private, ok := split(token)
	if !ok {
		return nil, false, nil
	}
	name := secretPrefix + id
	data, err := t.Read(ctx, name)
	if err != nil || data == nil {
		return nil, false, err
	}
	s, err := ReadSecret(data)
	if err != nil {
		return nil, false, fmt.Errorf("the stored Secret %s/%s cannot be read", Namespace, name)
	}
	groups, refused := s.check(id, private)
	if refused != "" {
		t.Log.Debug("bootstrap token refused", "secret", Namespace+"/"+name, "reason", refused)
		return nil, false, nil
	}
	return &authn.TokenAnswer{User: &request.User{Name: userPrefix + id, Groups: groups}}, true, nil
}

// check returns the groups of the user, or why the token does not count. The reason says
// nothing that is secret.
func (s *Secret) check(id, private string) (groups []string, refused string) {
	switch {
	case s.Metadata.DeletionTimestamp != nil:
		return nil, "the Secret is being deleted"
	case !s.IsToken():
		return nil, "the Secret is not of type " + Type
	case subtle.ConstantTimeCompare(s.Data[secretKey], []byte(private)) != 1:
		return nil, secretKey + " is another one"
	case string(s.Data[idKey]) != id:
		return nil, idKey + " is not that of the name"
	case s.IsExpired(time.Now()):
		return nil, "it has expired"
	case string(s.Data[authenticationKey]) != "true":
		return nil, authenticationKey + " is not true"
	}
	groups = []string{group}
	if more := string(s.Data[groupsKey]); more != "" {
		for name := range strings.SplitSeq(more, ",") {
			if !mayAdd(name) {
				return nil, groupsKey + " has a group that does not match " + groupPattern
			}
			groups = append(groups, name)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), ""
}

// Lengths of the two parts of a token.
const idLength, privateLength = 6, 16

// split takes a token apart: six and sixteen small letters or digits, with a dot between them.
func split(token string) (id, private string, ok bool) {
	id, private, ok = strings.Cut(token, ".")
	return id, private, ok && len(id) == idLength && len(private) == privateLength && plain(id) && plain(private)
}

func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}
