package authn

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/request"
)

// Tokens knows users by their bearer tokens.
type Tokens struct {
	// Users by the SHA-256 of their tokens, so that the tokens themselves are not
	// kept, and finding one takes no longer the more of it was guessed.
	users map[[sha256.Size]byte]*request.User
}

// LoadTokens reads a token file: lines of token, user name, user UID and,
// optionally, a quoted list of groups, separated by commas. warnings are about
// lines that do not count.
func LoadTokens(path string) (t *Tokens, warnings []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return ReadTokens(file, path)
}

// ReadTokens is LoadTokens for what comes from r. Warnings and errors speak of it
// by name, and never say what a token is.
func ReadTokens(r io.Reader, name string) (t *Tokens, warnings []string, err error) {
	t = &Tokens{users: map[[sha256.Size]byte]*request.User{}}
	lines := csv.NewReader(r)
	lines.FieldsPerRecord = -1
	for number := 1; ; number++ {
		fields, err := lines.Read()
		switch {
		case err == io.EOF:
			return t, warnings, nil
		case err != nil:
			return nil, nil, fmt.Errorf("token file '%s': %w", name, err)
		case len(fields) < 3:
			return nil, nil, fmt.Errorf("token file '%s' must have at least 3 columns (token, user name, user uid), found %d", name, len(fields))
		case fields[0] == "":
			warnings = append(warnings, fmt.Sprintf("empty token has been found in token file '%s', record number '%d'", name, number))
			continue
		}
		u := &request.User{Name: fields[1], UID: fields[2]}
		if len(fields) >= 4 {
			u.Groups = strings.Split(fields[3], ",")
		}
		key := sha256.Sum256([]byte(fields[0]))
		if t.users[key] != nil {
			warnings = append(warnings, fmt.Sprintf("duplicate token has been found in token file '%s', record number '%d'", name, number))
		}
		t.users[key] = known(u)
	}
}

var errInvalidToken = errors.New("invalid bearer token")

// Authenticate implements Authenticator. A token comes in the Authorization
// header or, from a browser that opens a websocket, as a subprotocol.
func (t *Tokens) Authenticate(r *http.Request) (*request.User, bool, error) {
	if u, ok, err := t.byHeader(r); ok || err != nil {
		return u, ok, err
	}
	return t.bySubprotocol(r)
}

func (t *Tokens) find(token string) (*request.User, bool, error) {
	if u := t.users[sha256.Sum256([]byte(token))]; u != nil {
		return u, true, nil
	}
	return nil, false, errInvalidToken
}

func (t *Tokens) byHeader(r *http.Request) (*request.User, bool, error) {
	token, _ := bearer(r)
	if token == "" {
		return nil, false, nil
	}
	return t.find(token)
}

// bearer returns the token in the Authorization header. misplaced says that
// there is one that does not count because of the space before it.
func bearer(r *http.Request) (token string, misplaced bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	token, rest, found := strings.Cut(rest, " ")
	return token, token == "" && found && rest != ""
}

// Warnings returns what to warn a client of who did not authenticate although
// they might have meant to.
func Warnings(r *http.Request) []string {
	if _, misplaced := bearer(r); misplaced {
		return []string{"the provided Authorization header contains extra space before the bearer token, and is ignored"}
	}
	return nil
}

const (
	subprotocols     = "Sec-Websocket-Protocol"
	bearerProtocol   = "base64url.bearer.authorization.k8s.io."
	upgradeWebsocket = "websocket"
)

func (t *Tokens) bySubprotocol(r *http.Request) (*request.User, bool, error) {
	if !isWebsocket(r) {
		return nil, false, nil
	}
	var encoded, others []string
	for _, header := range r.Header[subprotocols] {
		for protocol := range strings.SplitSeq(header, ",") {
			protocol = strings.TrimSpace(protocol)
			if token, ok := strings.CutPrefix(protocol, bearerProtocol); ok {
				encoded = append(encoded, token)
			} else {
				others = append(others, protocol)
			}
		}
	}
	if len(encoded) == 0 {
		return nil, false, nil
	}
	if len(encoded) > 1 {
		return nil, false, errors.New("more than one bearer token as websocket subprotocol")
	}
	token, err := base64.RawURLEncoding.DecodeString(encoded[0])
	if err != nil || !utf8.Valid(token) {
		return nil, false, errors.New("the bearer token in the websocket subprotocol is not base64url of UTF-8")
	}
	if len(token) == 0 {
		return nil, false, nil
	}
	if len(others) == 0 {
		return nil, false, errors.New("besides the one with the bearer token there is no websocket subprotocol to answer with")
	}
	u, ok, err := t.find(string(token))
	if ok {
		r.Header.Set(subprotocols, strings.Join(others, ","))
	}
	return u, ok, err
}

func isWebsocket(r *http.Request) bool {
	if !strings.EqualFold(r.Header.Get("Upgrade"), upgradeWebsocket) {
		return false
	}
	for _, value := range r.Header["Connection"] {
		if strings.Contains(strings.ToLower(value), "upgrade") {
			return true
		}
	}
	return false
}
