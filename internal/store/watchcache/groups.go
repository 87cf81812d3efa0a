package watchcache

import "strings"

// groups are the waiting watchers of a resource, by their prefixes, so that a write to one namespace
// does not wake watchers of another.
type groups map[string]*group

// A group is the waiting watchers of one prefix.
type group struct {
	waiting int
	woken   chan struct{} // closed when there may be something for them
	// seen is up to where nothing happened to the prefix since they began to
	// wait. It is set before woken is closed.
	seen int64
}

// join adds a waiting watcher to the group of its prefix.
func (g *groups) join(prefix string) *group {
	if *g == nil {
		*g = groups{}
	}
	one := (*g)[prefix]
	if one == nil {
		one = &group{woken: make(chan struct{})}
		(*g)[prefix] = one
	}
	one.waiting++
	return one
}

// leave takes out a watcher that does not wait any longer. It reports whether
// nothing happened to the prefix while it waited.
func (g groups) leave(prefix string, one *group) bool {
	if g[prefix] != one {
		return false
	}
	if one.waiting--; one.waiting == 0 {
		delete(g, prefix)
	}
	return true
}

// match removes the groups that watch a key of the resource, which was quiet up to seen, and appends
// them to woken.
func (g groups) match(resource, key string, seen int64, woken []*group) []*group {
	if len(g) == 0 {
		return woken
	}
	take := func(prefix string) {
		if one := g[prefix]; one != nil {
			one.seen = seen
			delete(g, prefix)
			woken = append(woken, one)
		}
	}
	for end := range slashes(key) {
		if end >= len(resource) {
			take(key[:end])
		}
	}
	take(key)
	return woken
}

// all takes out all groups.
func (g groups) all(seen int64) []*group {
	var woken []*group
	for prefix, one := range g {
		one.seen = seen
		delete(g, prefix)
		woken = append(woken, one)
	}
	return woken
}

func wake(groups []*group) {
	for _, g := range groups {
		close(g.woken)
	}
}

// within reports whether a prefix names a key. One that ends in '/', or is
// empty, names what starts with it; any other names itself, so that "a" does
// not name "ab".
func within(prefix, key string) bool {
	if prefix == "" || prefix[len(prefix)-1] == '/' {
		return strings.HasPrefix(key, prefix)
	}
	return key == prefix
}
