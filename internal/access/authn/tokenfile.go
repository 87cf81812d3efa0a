package authn

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/anykind/anykind/internal/object/request"
)

// A TokenFile authenticates by the bearer tokens of a file.
type TokenFile struct {
	// Keyed by the SHA-256 of the token: tokens are not kept, and the timing of a lookup discloses
	// nothing about them.
	answers map[[sha256.Size]byte]*TokenAnswer
}

// LoadTokenFile reads a token file. A line has a token, user name, user UID and optionally a quoted
// list of groups, separated by commas. warnings are about ignored lines.
func LoadTokenFile(path string) (t *TokenFile, warnings []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return ReadTokenFile(file, path)
}

// ReadTokenFile is LoadTokenFile for a reader. Warnings and errors mention its name, and never a
// token.
func ReadTokenFile(r io.Reader, name string) (t *TokenFile, warnings []string, err error) {
	t = &TokenFile{answers: map[[sha256.Size]byte]*TokenAnswer{}}
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
		if t.answers[key] != nil {
			warnings = append(warnings, fmt.Sprintf("duplicate token has been found in token file '%s', record number '%d'", name, number))
		}
		t.answers[key] = &TokenAnswer{User: known(u)}
	}
}

// AuthenticateToken implements TokenAuthenticator.
func (t *TokenFile) AuthenticateToken(_ context.Context, token string, _ []string) (*TokenAnswer, bool, error) {
	a := t.answers[sha256.Sum256([]byte(token))]
	return a, a != nil, nil
}
