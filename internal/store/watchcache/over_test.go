package watchcache_test

import (
	"fmt"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// over runs a cache over f, of a store over the present state of the one of f.
func (f *fixture) over() *fixture {
	f.Helper()
	state, release, err := kv.Keep(f.Context(), f.store, kv.Latest)
	if err != nil {
		f.Fatal(err)
	}
	store := memkv.New(memkv.Options{Over: state})
	f.Cleanup(func() { store.Close(); release() })
	return run(f, store, watchcache.Options{Over: f.cache, Base: state.Revision()}, nil)
}

// object returns the object with a key; nil if there is none.
func (f *fixture) object(key string) *watchcache.Object {
	f.Helper()
	o, err := f.cache.Resource(crontabs).Get(f.Context(), key)
	if err != nil {
		f.Fatal(err)
	}
	return o
}

// A cache over another one shares its objects, also those that the other one has replaced since, and has the
// changes of its own store.
func TestOver(t *testing.T) {
	below := start(t, watchcache.Options{}, nil)
	key := func(name string) string { return crontabs + "default/" + name }
	for _, name := range []string{"same", "replaced", "gone", "mine", "mine-gone"} {
		below.put(key(name), "first")
	}
	first := map[string]*watchcache.Object{}
	for _, name := range []string{"same", "replaced", "gone"} {
		first[name] = below.object(key(name))
	}
	above := below.over()
	below.put(key("replaced"), "second")
	below.del(key("gone"))
	below.put(key("later"), "second")
	write(t, above.store, key("mine"), document(key("mine"), "own")) // before the resource is loaded
	write(t, above.store, key("mine-gone"), nil)
	above.synced(write(t, above.store, key("new"), document(key("new"), "own")))

	for name, o := range first {
		if above.object(key(name)) != o {
			t.Errorf("%s is not the object of the cache below", name)
		}
	}
	if above.object(key("later")) != nil || above.object(key("mine-gone")) != nil {
		t.Error("it has an object that it should not have")
	}
	if above.object(key("new")) == nil || below.object(key("new")) != nil {
		t.Error("a new object is not in the cache above, or in the one below, too")
	}
	above.put(key("same"), "own")
	if below.object(key("same")) != first["same"] {
		t.Error("a change above is seen below")
	}
	state, err := above.cache.Resource(crontabs).Snapshot(t.Context(), kv.Latest)
	if err != nil || state.Len("", "") != 5 {
		t.Errorf("%d objects, %v", state.Len("", ""), err)
	}
}

// A cache whose store has compacted its first changes reads the present state, and shares the objects
// without changes. Without the cache below, it reads all.
func TestOverIncomplete(t *testing.T) {
	below := start(t, watchcache.Options{}, nil)
	key := func(i int) string { return fmt.Sprintf("%sdefault/n%d", crontabs, i) }
	for i := range 4 {
		below.put(key(i), "first")
	}
	first := below.object(key(0))
	above, alone := below.over(), below.over()
	for i := range 3 {
		revision := write(t, above.store, key(3), document(key(3), fmt.Sprint(i)))
		above.synced(revision)
		if err := above.store.Compact(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
	}
	if above.object(key(0)) != first || above.object(key(3)) == below.object(key(3)) {
		t.Error("it does not have the object of the cache below, or not its own one")
	}
	if err := below.stop(); err != nil {
		t.Fatal(err)
	}
	if o := alone.object(key(1)); o == nil || o == first {
		t.Error("without the cache below it has no objects")
	}
}
