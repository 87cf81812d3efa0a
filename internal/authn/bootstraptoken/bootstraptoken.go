// Package bootstraptoken knows nodes that join, by the bootstrap tokens in Secrets.
//
// It knows what such a Secret says. It remembers none, so one that is deleted or changed is so
// for the next request.
package bootstraptoken

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/authn"
	"github.com/anykind/anykind/internal/request"
)

// Namespace is where the Secrets are.
const Namespace = "kube-system"

const (
	secretPrefix = "bootstrap-token-" // the id follows
	secretType   = "bootstrap.kubernetes.io/token"

	userPrefix = "system:bootstrap:" // the id follows
	group      = "system:bootstrappers"
)

// Keys of the data of a Secret.
const (
	idKey         = "token-id"
	secretKey     = "token-secret"
	usageKey      = "usage-bootstrap-authentication"
	expirationKey = "expiration"
	groupsKey     = "auth-extra-groups"
)

// groupPattern is what groups of its own a token may add.
var groupPattern = regexp.MustCompile(`\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`)

// Tokens knows users by bootstrap tokens. It implements authn.TokenAuthenticator.
type Tokens struct {
	// Read returns the Secret of a name in the Namespace as it is stored now, as JSON, or nil
	// if there is none.
	Read func(ctx context.Context, name string) ([]byte, error)
	Log  *slog.Logger
}

var _ authn.TokenAuthenticator = (*Tokens)(nil)

// secret is what is read of a Secret.
type secret struct {
	Metadata struct {
		DeletionTimestamp *string `json:"deletionTimestamp"`
	} `json:"metadata"`
	Type string            `json:"type"`
	Data map[string][]byte `json:"data"`
}

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
	var s secret
	if err := json.Unmarshal(data, &s); err != nil {
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
func (s *secret) check(id, private string) (groups []string, refused string) {
	switch {
	case s.Metadata.DeletionTimestamp != nil:
		return nil, "the Secret is being deleted"
	case s.Type != secretType:
		return nil, "the Secret is not of type " + secretType
	case subtle.ConstantTimeCompare(s.Data[secretKey], []byte(private)) != 1:
		return nil, secretKey + " is another one"
	case string(s.Data[idKey]) != id:
		return nil, idKey + " is not that of the name"
	case s.expired():
		return nil, "it has expired"
	case string(s.Data[usageKey]) != "true":
		return nil, usageKey + " is not true"
	}
	groups = []string{group}
	if more := string(s.Data[groupsKey]); more != "" {
		for name := range strings.SplitSeq(more, ",") {
			if !groupPattern.MatchString(name) {
				return nil, groupsKey + " has a group that does not match " + groupPattern.String()
			}
			groups = append(groups, name)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), ""
}

// expired reports whether the time of a token is over, or cannot be read.
func (s *secret) expired() bool {
	text := s.Data[expirationKey]
	if len(text) == 0 {
		return false
	}
	at, err := time.Parse(time.RFC3339, string(text))
	return err != nil || !time.Now().Before(at)
}

// split takes a token apart: six and sixteen small letters or digits, with a dot between them.
func split(token string) (id, private string, ok bool) {
	const idLength, privateLength = 6, 16
	id, private, ok = strings.Cut(token, ".")
	return id, private, ok && len(id) == idLength && len(private) == privateLength && plain(id) && plain(private)
}

func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
}
