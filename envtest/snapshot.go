package envtest

import (
	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/resource"
)

// A Snapshot is the state of a server at one revision, with its credentials. Any number of
// Environments can start from it, also concurrently: by their field From. They share unchanged
// objects, so the start takes the same time for any number of objects.
//
// Objects keep their uids, times and resourceVersions. Lists and watches cannot use older
// revisions. Service account tokens and user certificates of the server are valid at all servers
// that start from its Snapshot.
type Snapshot struct {
	objects *app.Snapshot
	keys    *credentials
	issuers []string
	schemas []resource.Schema // keeps the schemas compiled while the Snapshot is in use
}

// Snapshot returns the current state of the server. It is atomic and consistent during concurrent
// writes.
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
