package envtest

import (
	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/resource"
)

// A Snapshot is what a server held at one moment, and how it was known. Any number of Environments
// can begin with it, also at once: in their field From. They share what they do not change, so that
// to begin takes the same time however much there is.
//
// Objects have the uids, times and resourceVersions that they had. A list or a watch cannot ask for
// what was before the Snapshot. Tokens of service accounts, and certificates of users, that the
// server has issued count for those that begin with its Snapshot.
type Snapshot struct {
	objects *app.Snapshot
	keys    *credentials
	issuers []string
	schemas []resource.Schema // which are kept compiled as long as the Snapshot is used
}

// Snapshot returns what the server holds now. It may be taken while others write: it has a write
// whole or not at all, and what was written before the ones that it has.
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
