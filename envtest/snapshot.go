package envtest

import (
	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/resource"
)

// A Snapshot is the state of a server at one moment, with its credentials. Any number of Environments
// can begin with it, also concurrently: see their field From. They share unchanged data, so the start
// takes the same time whatever the size.
//
// Objects keep their uids, times and resourceVersions. A list or a watch cannot go back beyond the
// Snapshot. Servers that begin with the Snapshot accept the service account tokens and client
// certificates that its server issued.
type Snapshot struct {
	objects *app.Snapshot
	keys    *credentials
	issuers []string
	schemas []resource.Schema // keeps the schemas compiled while the Snapshot is in use
}

// Snapshot returns the current state of the server. It may run during writes: it contains a prefix of
// the writes, each one whole.
func (te *Environment) Snapshot() (*Snapshot, error) {
	if te.server == nil {
		return nil, errNotStarted
	}
	objects, err := te.server.app.Snapshot()
	if err != nil {
		return nil, err
	}
	taken := &Snapshot{objects: objects, keys: te.server.keys, issuers: te.server.issuers}
	for d := range te.server.app.Definitions().All() {
		for _, v := range d.Versions {
			taken.schemas = append(taken.schemas, v.Schema)
		}
	}
	return taken, nil
}

func (s *Snapshot) stored() *app.Snapshot {
	if s == nil {
		return nil
	}
	return s.objects
}

func (s *Snapshot) issued() []string {
	if s == nil {
		return nil
	}
	return s.issuers
}

func (s *Snapshot) credentials() *credentials {
	if s == nil {
		return nil
	}
	return s.keys
}
