package bootstraptoken

import (
	"encoding/json"
	"strings"
	"time"
)

// Type is that of the Secrets.
const Type = "bootstrap.kubernetes.io/token"

const secretPrefix = "bootstrap-token-" // of a name; the id follows

// Keys of the data of a Secret.
const (
	idKey             = "token-id"
	secretKey         = "token-secret"
	authenticationKey = "usage-bootstrap-authentication"
	signingKey        = "usage-bootstrap-signing"
	expirationKey     = "expiration"
	groupsKey         = "auth-extra-groups"
)

// A Secret is what is read of one.
type Secret struct {
	Metadata struct {
		Name, UID         string
		DeletionTimestamp *string
	}
	Type string
	Data map[string][]byte
}

// ReadSecret reads a Secret as it is stored.
func ReadSecret(value []byte) (s Secret, err error) {
	err = json.Unmarshal(value, &s)
	return s, err
}

// IsToken reports whether it is one of a bootstrap token.
func (s *Secret) IsToken() bool { return s.Type == Type }

// Ends returns when the token expires, which is long ago if the time cannot be read. ok is false
// if it never does.
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

// IsExpired reports whether the time of the token is over.
func (s *Secret) IsExpired(now time.Time) bool {
	at, ok := s.Ends()
	return ok && !now.Before(at)
}

// Signs returns the token, if it is one to sign with.
func (s *Secret) Signs(now time.Time) (id, private string, ok bool) {
	id, named := strings.CutPrefix(s.Metadata.Name, secretPrefix)
	private = string(s.Data[secretKey])
	ok = s.IsToken() && named && len(id) == idLength && plain(id) && string(s.Data[idKey]) == id && private != "" &&
		!s.IsExpired(now) && string(s.Data[signingKey]) == "true"
	return id, private, ok
}
