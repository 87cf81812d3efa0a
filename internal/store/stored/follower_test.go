package stored

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/transform"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// locked decodes no value until it is open.
type locked struct{ open atomic.Bool }

func (l *locked) Encode(_ context.Context, _ string, plain []byte) ([]byte, error) { return plain, nil }

func (l *locked) Decode(_ context.Context, _ string, stored []byte) []byte {
	if l.open.Load() {
		return stored
	}
	return []byte("unreadable")
}

// A Follower gets the whole state after the cache has forgotten a kind, although there was no change.
func TestFollowerReadsAnew(t *testing.T) {
	l := &locked{}
	backend := transform.New(memkv.New(memkv.Options{}), l, transform.Options{})
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	d := resource.New(resource.Definition{Plural: "limitranges", Kind: "LimitRange", Namespaced: true,
		StoragePrefix: resource.BuiltInPrefix("limitranges"), Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true}}})
	created, err := backend.Commit(ctx, kv.Write{Key: d.Key("n", "a"), Value: []byte(`{"metadata":{"name":"a"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got string
	f := Follow(cache, resource.NewSet([]*resource.Definition{d}), []schema.GroupResource{{Resource: "limitranges"}},
		func(_ int, c Changes) {
			got += fmt.Sprintf("anew: %v", c.Anew())
			for o, exists := range c.All() {
				got += fmt.Sprintf(", %s exists: %v, readable: %v", strings.TrimPrefix(o.Key, d.Key("n", "")), exists, o.Err() == nil)
			}
			got += "; "
		})
	refresh := func() {
		t.Helper()
		if err := f.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	refresh()
	l.open.Store(true)
	cache.Reread()
	refresh()
	refresh()
	if _, err := backend.Commit(ctx, kv.Write{Key: d.Key("n", "a"), Expect: created}); err != nil {
		t.Fatal(err)
	}
	refresh()
	if want := "anew: true, a exists: true, readable: false; anew: true, a exists: true, readable: true; anew: false, a exists: false, readable: true; "; got != want {
		t.Errorf("the follower got %q, want %q", got, want)
	}
}

// An object is unreadable until it is read, is gone, or all of its kind are read anew.
func TestUnreadable(t *testing.T) {
	var u Unreadable
	a, b := &watchcache.Object{Key: "/x/a"}, &watchcache.Object{Key: "/y/b"}
	u.Set(a, errUnread)
	u.Set(b, errUnread)
	u.Clear("/x/")
	if err := u.Err(); err == nil || err.Error() != `"/y/b" cannot be read: stored objects cannot be read yet` {
		t.Error(err)
	}
	u.Set(b, nil)
	if err := u.Err(); err != nil {
		t.Error(err)
	}
}
