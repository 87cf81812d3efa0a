package peer

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// grace is the time after which every server has seen the deletion of a definition.
const grace = 5 * time.Minute

// custom has the versions of groups that CustomResourceDefinitions define, and those of APIServices that name a
// Service.
type custom struct {
	follower *stored.Follower
	gone     func() // called after versions were deleted

	mu      sync.Mutex
	objects [2]map[string][]schema.GroupVersion // by key, of each followed kind
	count   map[schema.GroupVersion]int         // objects with the version
	deleted map[schema.GroupVersion]time.Time
	changes int // of the keys of count and deleted
}

// follow begins to follow the definitions. gone is called after some were deleted.
func (c *custom) follow(cache *watchcache.Cache, kinds *resource.Set, gone func()) {
	for i := range c.objects {
		c.objects[i] = map[string][]schema.GroupVersion{}
	}
	c.count, c.deleted, c.gone = map[schema.GroupVersion]int{}, map[schema.GroupVersion]time.Time{}, gone
	c.follower = stored.Follow(cache, kinds, []schema.GroupResource{
		{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		{Group: "apiregistration.k8s.io", Resource: "apiservices"},
	}, c.apply)
}

// keepUp applies the changes that the cache has. After a failure the previous state stays in effect.
func (c *custom) keepUp(ctx context.Context, log *slog.Logger) {
	if err := c.follower.KeepUp(ctx); err != nil && ctx.Err() == nil {
		log.Warn("definitions cannot be read; the previous ones stay in effect", "error", err)
	}
}

// apply follows the changes of a kind.
func (c *custom) apply(of int, changes stored.Changes) {
	c.mu.Lock()
	before, objects := len(c.deleted), c.objects[of]
	if changes.Anew() {
		for key := range objects {
			c.put(objects, key, nil)
		}
	}
	for o, exists := range changes.All() {
		var versions []schema.GroupVersion
		if exists {
			versions = versionsOf(of, o)
		}
		c.put(objects, o.Key, versions)
	}
	for gv := range c.deleted {
		if c.count[gv] > 0 {
			delete(c.deleted, gv)
		}
	}
	gone := len(c.deleted) > before
	c.mu.Unlock()
	if gone {
		c.gone()
	}
}

// put replaces the versions of an object.
func (c *custom) put(objects map[string][]schema.GroupVersion, key string, versions []schema.GroupVersion) {
	for _, gv := range versions {
		if c.count[gv]++; c.count[gv] == 1 {
			c.changes++
		}
	}
	for _, gv := range objects[key] {
		if c.count[gv]--; c.count[gv] == 0 {
			delete(c.count, gv)
			c.deleted[gv] = time.Now()
			c.changes++
		}
	}
	if len(versions) == 0 {
		delete(objects, key)
	} else {
		objects[key] = versions
	}
}

// versionsOf returns the versions that an object defines: all of a CustomResourceDefinition, and the
// one of an APIService that names a Service.
func versionsOf(of int, o *watchcache.Object) (versions []schema.GroupVersion) {
	var t struct {
		Spec struct {
			Group    string
			Version  string
			Service  *struct{}
			Versions []struct{ Name string }
		}
	}
	data, err := o.JSON()
	if err != nil || json.Unmarshal(data, &t) != nil {
		return nil
	}
	if of == 1 && t.Spec.Service != nil {
		return []schema.GroupVersion{{Group: t.Spec.Group, Version: t.Spec.Version}}
	}
	for _, v := range t.Spec.Versions {
		versions = append(versions, schema.GroupVersion{Group: t.Spec.Group, Version: v.Name})
	}
	return versions
}

// excludes reports whether a version in the discovery of a peer, requested at a time, is that of a
// definition: an existing one, or one that was deleted shortly before.
func (c *custom) excludes(gv schema.GroupVersion, asked time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, gone := c.deleted[gv]
	return c.count[gv] > 0 || gone && asked.Before(at.Add(grace))
}

// without returns the groups of a peer without excluded versions.
func (c *custom) without(s *served) (groups []any) {
	for _, item := range s.groups {
		g, _ := item.(object.Tree)
		var versions []any
		for _, v := range kind.List(g, "versions") {
			if !c.excludes(schema.GroupVersion{Group: nameOf(g, 0), Version: nameOf(v, 1)}, s.asked) {
				versions = append(versions, v)
			}
		}
		if versions != nil {
			g = maps.Clone(g)
			g["versions"] = versions
			groups = append(groups, g)
		}
	}
	return groups
}

// changed returns a number that differs after each change.
func (c *custom) changed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// settle forgets the deletions that every peer has seen, because its discovery was requested later
// than oldest. It returns the time of the newest one that remains.
func (c *custom) settle(oldest time.Time) (newest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for gv, at := range c.deleted {
		if !oldest.Before(at.Add(grace)) {
			delete(c.deleted, gv)
		} else if at.After(newest) {
			newest = at
		}
	}
	return newest
}
