package authn

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/object/request"
)

// Bearer authenticates the bearer token of a request by Tokens. The token comes in the Authorization
// header or, from a browser that opens a WebSocket, as a subprotocol.
type Bearer struct {
	Tokens *Tokens
}

// Authenticate implements Authenticator.
func (b Bearer) Authenticate(r *http.Request) (*request.User, bool, error) {
	if b.Tokens.Empty() {
		return nil, false, nil
	}
	var errs []error
	for _, by := range []func(*http.Request) (*request.User, bool, error){b.byHeader, b.bySubprotocol} {
		u, ok, err := by(r)
		if ok {
			return u, true, nil
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return nil, false, errors.Join(errs...)
}

func (b Bearer) byHeader(r *http.Request) (*request.User, bool, error) {
	token, _ := bearer(r)
	if token == "" {
		return nil, false, nil
	}
	return b.find(r, token)
}

func (b Bearer) find(r *http.Request, token string) (*request.User, bool, error) {
	a, ok, err := b.Tokens.AuthenticateToken(r.Context(), token, nil)
	switch {
	case err != nil:
		return nil, false, err
	case !ok:
		return nil, false, ErrInvalidToken
	}
	return a.User, true, nil
}

// bearer returns the token in the Authorization header. misplaced reports a token that is ignored
// because of the space before it.
func bearer(r *http.Request) (token string, misplaced bool) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return "", false
	}
	token, rest, found := strings.Cut(rest, " ")
	return token, token == "" && found && rest != ""
}

// Warnings returns warnings for an unauthenticated client that probably meant to send credentials.
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

func (b Bearer) bySubprotocol(r *http.Request) (*request.User, bool, error) {
	if !isWebsocket(r) {
		return nil, false, nil
	}
	encoded, others := protocols(r)
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
	u, ok, err := b.find(r, string(token))
	if ok {
		r.Header.Set(subprotocols, strings.Join(others, ","))
	}
	return u, ok, err
}

// protocols splits the subprotocols that a client offers into bearer tokens and others.
func protocols(r *http.Request) (encoded, others []string) {
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
	return encoded, others
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
