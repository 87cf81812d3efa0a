package gate

import "fmt"

// A Release is a minor release of Kubernetes 1.
type Release int

// Current is the release that this server implements.
const Current Release = 37

// Oldest is the oldest release that a server can emulate, and the oldest one that it is compatible with.
const Oldest = Current - 3

func (r Release) String() string { return fmt.Sprintf("1.%d", int(r)) }

// Emulated returns the release whose gates and kinds the server has.
func (s *Set) Emulated() Release {
	if s == nil || s.emulated == 0 {
		return Current
	}
	return s.emulated
}

// Compatible returns the oldest release of other servers with the same store. They can read what this server
// writes.
func (s *Set) Compatible() Release {
	if s == nil || s.compatible == 0 {
		return s.Emulated() - 1
	}
	return s.compatible
}

// ServesNewer reports whether versions newer than the emulated release are served where an older one is.
func (s *Set) ServesNewer() bool { return s != nil && s.newer }

// ServesNamed reports whether versions newer than the emulated release are served if the configuration names them.
func (s *Set) ServesNamed() bool { return s != nil && s.named }
