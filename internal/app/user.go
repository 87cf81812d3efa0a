package app

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/network/pki"
)

// A User is a user with a client certificate of a server.
type User struct {
	Name   string
	Groups []string
	Life   time.Duration // of the certificate

	Dir           string // of the server
	Administrator string // the administrator's kubeconfig, with the URL of the server
}

// Credentials issues the certificate offline. It also returns the expiry.
func (u User) Credentials() (kubeconfig.Credentials, time.Time, error) {
	none := kubeconfig.Credentials{}
	if err := u.check(); err != nil {
		return none, time.Time{}, err
	}
	pair, err := pki.SignClient(filepath.Join(u.Dir, credentials), u.Name, u.Groups, u.Life)
	if errors.Is(err, fs.ErrNotExist) {
		return none, time.Time{}, fmt.Errorf("no server was started with the data directory %s: name the directory with --data-dir", u.Dir)
	}
	if err != nil {
		return none, time.Time{}, err
	}
	url, ca, err := kubeconfig.ReadCluster(u.Administrator)
	if errors.Is(err, fs.ErrNotExist) {
		return none, time.Time{}, fmt.Errorf("the administrator's kubeconfig %s is missing: name the file with --admin-kubeconfig", u.Administrator)
	}
	if err != nil {
		return none, time.Time{}, err
	}
	return kubeconfig.Credentials{User: u.Name, Server: url, CA: ca, Certificate: pair.CertPEM(), Key: pair.KeyPEM()}, pair.Cert.NotAfter, nil
}

func (u User) check() error {
	switch {
	case u.Name == "":
		return errors.New("the user name is empty")
	case u.Name == kubeconfig.Administrator:
		return fmt.Errorf("%q is reserved for the administrator: choose another name", u.Name)
	case u.Life < time.Second:
		return fmt.Errorf("--duration is %v: want at least 1s", u.Life)
	}
	for _, g := range u.Groups {
		if g == "" {
			return errors.New("a group name is empty")
		}
	}
	return nil
}
