package bootstraptoken

import (
	"encoding/json"
	"strings"
	"time"
)

// Type is the type of the Secrets.
const Type = "bootstrap.kubernetes.io/token"

const secretPrefix = "bootstrap-token-" // the token ID follows

// Keys of the data of a Secret.
const (
	idKey             = "token-id"
	secretKey         = "token-secret"
	authenticationKey = "usage-bootstrap-authentication"
	signingKey        = "usage-bootstrap-signing"
	expirationKey     = "expiration"
	groupsKey         = "auth-extra-groups"
)

// A Secret holds the fields of a Secret that matter for bootstrap tokens.
type Secret struct {
	Metadata struct {
		Name, UID         string
		DeletionTimestamp *string
	}
	Type string
	Data map[string][]byte
}

// ReadSecret parses a stored Secret.
func ReadSecret(value []byte) (s Secret, err error) {
	err = json.Unmarshal(value, &s)
	return s, err
}

// IsToken reports whether the Secret holds a bootstrap token.
func (s *Secret) IsToken() bool { return s.Type == Type }

// Ends returns the expiration of the token. An invalid time counts as long past. ok is false if the
// token never expires.
func (s *Secret) Ends() (at time.Time, ok bool) {
	text := s.Data[expirationKey]
	if len(text) == 0 {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return time.Time{}, true
	}
	return at, true
}

// IsExpired reports whether the token has expired.
func (s *Secret) IsExpired(now time.Time) bool {
	at, ok := s.Ends()
	return ok && !now.Before(at)
}

// Signs returns the token if it is allowed to sign.
func (s *Secret) Signs(now time.Time) (id, private string, ok bool) {
	id, named := strings.CutPrefix(s.Metadata.Name, secretPrefix)
	private = string(s.Data[secretKey])
	ok = s.IsToken() && named && len(id) == idLength && plain(id) && string(s.Data[idKey]) == id && private != "" &&
		!s.IsExpired(now) && string(s.Data[signingKey]) == "true"
	return id, private, ok
}
