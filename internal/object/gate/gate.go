// Package gate has the feature gates of Kubernetes.
//
// gates.txt has the gates of kube-apiserver with their defaults in each version. A Flag parses values
// for them, and a Set is the result. Kinds, plugins and handlers ask the Set of their server: there is no
// state outside of servers. The constants are the gates that change this server, and idle.txt has the
// others with a reason for each.
package gate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Name is the name of a gate.
type Name string

// A Set has the values of all gates, and the releases of a server. It does not change. The nil Set has the defaults.
type Set struct {
	changed map[Name]bool
	// idle are the changed gates that do not change the server. They have their defaults.
	idle []Name
	// emulated and compatible are 0 for the defaults.
	emulated, compatible Release
	newer, named         bool
}

// On reports whether a gate is on.
func (s *Set) On(n Name) bool {
	if s != nil {
		if on, ok := s.changed[n]; ok {
			return on
		}
	}
	return defaults()[n]
}

// Changed returns the gates whose values are not their defaults, sorted.
func (s *Set) Changed() []Name {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.changed))
}

// Idle returns the gates that were changed in vain.
func (s *Set) Idle() []Name {
	if s == nil {
		return nil
	}
	return s.idle
}

// defaults are the values of gates that are not set. They are those of the last specification in the table
// that works with servers of the previous version: a server without the flag does not parse the others. A test
// compares them with those of a Flag.
var defaults = sync.OnceValue(func() map[Name]bool {
	out := map[Name]bool{"AllAlpha": false, "AllBeta": false}
	for line := range strings.Lines(table) {
		name, specs, _ := strings.Cut(strings.TrimSpace(line), " ")
		specs, _, _ = strings.Cut(specs, " needs ")
		for spec := range strings.SplitSeq(specs, ",") {
			_, since, _ := strings.Cut(spec, " compatible=1.")
			if minor, _ := strconv.Atoi(since); minor < int(Current) {
				out[Name(name)] = slices.Contains(strings.Fields(spec), "on")
			}
		}
	}
	return out
})

// With returns a Set with other values of some gates. It does not check them, as a Flag does.
func With(values map[Name]bool) *Set {
	s := &Set{changed: map[Name]bool{}}
	for n, on := range values {
		if defaults()[n] != on {
			s.changed[n] = on
		}
	}
	return s
}
