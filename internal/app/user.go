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
		return none, time.Time{}, fmt.Errorf("%s is not the data directory of a server that was ever started: name it with --data-dir", u.Dir)
	}
	if err != nil {
		return none, time.Time{}, err
	}
	url, ca, err := kubeconfig.ReadCluster(u.Administrator)
	if errors.Is(err, fs.ErrNotExist) {
		return none, time.Time{}, fmt.Errorf("there is no administrator's kubeconfig %s, which says where the server is: name the one of serve with --admin-kubeconfig", u.Administrator)
	}
	if err != nil {
		return none, time.Time{}, err
	}
	return kubeconfig.Credentials{User: u.Name, Server: url, CA: ca, Certificate: pair.CertPEM(), Key: pair.KeyPEM()}, pair.Cert.NotAfter, nil
}

func (u User) check() error {
	switch {
	case u.Name == "":
		return errors.New("the name of a user must not be empty")
	case u.Name == kubeconfig.Administrator:
		return fmt.Errorf("%q is the administrator in kubeconfigs: take another name", u.Name)
	case u.Life < time.Second:
		return fmt.Errorf("the duration must be at least 1s, it is %v", u.Life)
	}
	for _, g := range u.Groups {
		if g == "" {
			return errors.New("the name of a group must not be empty")
		}
	}
	return nil
}
