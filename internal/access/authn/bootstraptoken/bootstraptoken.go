// Package bootstraptoken authenticates joining nodes by the bootstrap tokens in Secrets.
//
// It also parses such a Secret for the controllers of bootstrap tokens. It caches no token: a change
// or deletion of a Secret takes effect with the next request.
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

// Namespace is the namespace of the Secrets.
const Namespace = "kube-system"

const (
	userPrefix = "system:bootstrap:" // the token ID follows
	group      = "system:bootstrappers"
)

// groupPattern matches the extra groups of a token. Compiling it would cost every start a
// millisecond.
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

// Tokens authenticates by bootstrap tokens. It implements authn.TokenAuthenticator.
type Tokens struct {
	// Read returns the stored Secret of a name in the Namespace as JSON, or nil if it does not
	// exist.
	Read func(ctx context.Context, name string) ([]byte, error)
	Log  *slog.Logger
}

var _ authn.TokenAuthenticator = (*Tokens)(nil)

// AuthenticateToken implements authn.TokenAuthenticator. The reason of a rejection goes only to the
// log.
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

// check returns the groups of the user, or the reason of the rejection. The reason discloses no
// secret.
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

// Lengths of the token ID and the token secret.
const idLength, privateLength = 6, 16

// split parses a token: six and sixteen lowercase letters or digits, separated by a dot.
func split(token string) (id, private string, ok bool) {
	id, private, ok = strings.Cut(token, ".")
	return id, private, ok && len(id) == idLength && len(private) == privateLength && plain(id) && plain(private)
}

func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}
