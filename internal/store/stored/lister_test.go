package stored

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Each stored object is decoded once, and values of deleted objects are dropped.
func TestLister(t *testing.T) {
	backend := memkv.New(memkv.Options{})
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	d := resource.New(resource.Definition{Plural: "limitranges", Kind: "LimitRange", Namespaced: true,
		StoragePrefix: resource.BuiltInPrefix("limitranges"), Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true}}})
	limits := List[corev1.LimitRange](cache, resource.NewSet([]*resource.Definition{d}), corev1.Resource("limitranges"))
	write := func(namespace, name, uid string, expect int64) int64 {
		t.Helper()
		value := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"LimitRange","metadata":{"name":%q,"namespace":%q,"uid":%q}}`, name, namespace, uid)
		if uid == "" {
			value = nil
		}
		revision, err := backend.Commit(ctx, kv.Write{Key: d.Key(namespace, name), Value: value, Expect: expect})
		if err != nil {
			t.Fatal(err)
		}
		if err := cache.Wait(ctx, revision); err != nil {
			t.Fatal(err)
		}
		return revision
	}
	get := func(name string) *corev1.LimitRange {
		t.Helper()
		l, err := limits.Get(ctx, "n", name)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	someIn := func(namespace string) bool {
		t.Helper()
		some, err := limits.Any(ctx, namespace)
		if err != nil {
			t.Fatal(err)
		}
		return some
	}
	if l := get("a"); l != nil || someIn("n") {
		t.Errorf("%v is not there", l)
	}
	first := write("n", "a", "1", 0)
	if !someIn("n") || someIn("other") {
		t.Error("there is one in the namespace n, and in no other")
	}
	write("other", "a", "2", 0)
	if l := get("a"); l.UID != "1" || l != get("a") {
		t.Errorf("%s, made again", l.UID)
	}
	changed := write("n", "a", "3", first)
	if l, err := limits.Read(ctx, "n", "a"); err != nil || l.UID != "3" || limits.made[d.Key("n", "a")].value.(*corev1.LimitRange).UID != "1" {
		t.Errorf("%v, %v: it is not kept", l, err)
	}
	all, err := limits.List(ctx, "n")
	if err != nil || len(all) != 1 || all[0].UID != "3" {
		t.Errorf("%v, %v", all, err)
	}
	write("n", "a", "", changed)
	for i := range 200 {
		name := fmt.Sprint(i)
		revision := write("n", name, "4", 0)
		get(name)
		write("n", name, "", revision)
	}
	if all, err := limits.List(ctx, ""); err != nil || len(all) != 1 || len(limits.made) > 65 {
		t.Errorf("%v, %v; %d are kept", all, err, len(limits.made))
	}
	revision, err := backend.Commit(ctx, kv.Write{Key: d.Key("n", "broken"), Value: []byte("sealed")})
	if err != nil {
		t.Fatal(err)
	}
	if err := cache.Wait(ctx, revision); err != nil {
		t.Fatal(err)
	}
	if all, err := limits.List(ctx, "n"); err != nil || len(all) != 0 {
		t.Errorf("%v, %v without the one that cannot be read", all, err)
	}
	if all, err := limits.All(ctx, "n"); err == nil || !strings.Contains(err.Error(), `/n/broken" cannot be read: `) {
		t.Errorf("%v, %v with one that cannot be read", all, err)
	}
	if all, err := limits.All(ctx, "other"); err != nil || len(all) != 1 {
		t.Errorf("%v, %v in another namespace", all, err)
	}
}
