package watchcache

import "strings"

// groups are the waiting watchers of a resource, by their prefixes, so that a write to one namespace
// does not wake watchers of another.
type groups map[string]*group

// A group is the waiting watchers of one prefix.
type group struct {
	waiting int
	woken   chan struct{} // closed when there may be events
	// seen is the revision up to which there were no events for the prefix since the wait began. It is
	// set before woken is closed.
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

// leave removes a watcher that stops waiting. It reports whether there were no events for the prefix
// meanwhile.
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

// all removes all groups.
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

// within reports whether a key matches a prefix. One that ends in '/', or is empty, matches all keys
// that start with it; any other matches only itself, so that "a" does not match "ab".
func within(prefix, key string) bool {
	if prefix == "" || prefix[len(prefix)-1] == '/' {
		return strings.HasPrefix(key, prefix)
	}
	return key == prefix
}
