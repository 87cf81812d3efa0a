package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// SignClient returns a client certificate for a user in groups, signed by the CA in the directory
// of a PKI. It writes nothing there, so another process may have the directory open. The
// certificate expires with the CA at the latest.
func SignClient(dir, user string, groups []string, life time.Duration) (*Pair, error) {
	path := filepath.Join(dir, authorityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no CA in %s to sign the certificate: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	authority, err := parsePair(data)
	if err != nil {
		return nil, fmt.Errorf("the CA in %s is unusable: %w", path, err)
	}
	now := time.Now()
	if now.After(authority.Cert.NotAfter) {
		return nil, fmt.Errorf("the CA in %s expired at %s; a start of the server renews it", path, authority.Cert.NotAfter.Format(time.RFC3339))
	}
	return authority.sign(leaf{name: user, groups: groups, usage: x509.ExtKeyUsageClientAuth, life: life}, now)
}
