//go:build copied

package testing

import (
	"os"
	"path/filepath"
	"sync"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
)

// usual is the id of a server on this machine.
var usual = genericapiserver.NewConfig(legacyscheme.Codecs).APIServerID

// host returns the name of the host of a server: "" for that of this machine, and for each name that a test has set
// the id of a server on such a host.
func host() string {
	if id := genericapiserver.NewConfig(legacyscheme.Codecs).APIServerID; id != usual {
		return id
	}
	return ""
}

// certificate is the serving certificate of servers that trust each other: that of the first one.
var certificate serving

type serving struct {
	mu        sync.Mutex
	cert, key []byte
}

// files are the files of a certificate in a folder, as a server generates them.
func (s *serving) files(dir string) map[string]*[]byte {
	return map[string]*[]byte{filepath.Join(dir, "apiserver.crt"): &s.cert, filepath.Join(dir, "apiserver.key"): &s.key}
}

// write writes the certificate, if there is one, for a server that has not started yet.
func (s *serving) write(dir string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for file, content := range s.files(dir) {
		if len(*content) > 0 {
			if err := os.WriteFile(file, *content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// read reads the certificate of the first server.
func (s *serving) read(dir string) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.cert) > 0 {
		return nil
	}
	for file, content := range s.files(dir) {
		if *content, err = os.ReadFile(file); err != nil {
			return err
		}
	}
	return nil
}
