package registry_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// secrets returns a registry of n secrets, ten of which are of the type rare, half
// of those in the namespace other.
func secrets(t testing.TB, n, size int) (*registry.Registry, registry.Target, *memkv.Store) {
	backend := memkv.New(memkv.Options{})
	for i := range n {
		kind, namespace := "common", "x"
		if i%(n/10) == 7 {
			kind = "rare"
		}
		if i%2 == 0 {
			namespace = "other"
		}
		key := fmt.Sprintf("/registry/secrets/%s/s%06d", namespace, i)
		value := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s%06d","namespace":%q,"uid":"%08x-0000-4000-8000-000000000000","labels":{"third":"%t"}},"type":%q,"data":{"x":%q}}`,
			i, namespace, i, i%3 == 0, kind, strings.Repeat("A", size))
		if _, err := backend.Commit(t.Context(), kv.Write{Key: key, Value: value}); err != nil {
			t.Fatal(err)
		}
	}
	target := registry.StorageTarget(resource.NewSet(builtin.Definitions()).Lookup("", "secrets"), "", "")
	return registry.New(backend, caching(t, backend), registry.Options{}), target, backend
}

func selection(t testing.TB, target registry.Target, labels, fields string) registry.Selection {
	t.Helper()
	s, err := registry.Select(target.Definition, target.Version, labels, fields)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A field selector selects the same objects with a scan of few objects and with an index of many: in
// all namespaces, in one, with other selectors, and in pages.
func TestSelectedByField(t *testing.T) {
	for _, n := range []int{100, 2000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			r, all, _ := secrets(t, n, 10)
			for _, c := range []struct {
				namespace, labels, fields string
				want                      int
			}{
				{"", "", "type=rare", 10},
				{"x", "", "type=rare", 10}, // 7 is odd, and so are all that follow
				{"other", "", "type=rare", 0},
				{"", "third=true", "type=common", (n+2)/3 - map[int]int{100: 3, 2000: 3}[n]},
				{"", "", "type!=rare", n - 10},
				{"other", "", "type!=rare", n / 2},
				{"", "", "type!=common,metadata.namespace=x", 10},
				{"", "", "type=rare,type=common", 0},
				{"", "", "type=", 0},
				{"x", "", "type=rare,metadata.name=s000007", 1},
			} {
				target := all
				target.Namespace = c.namespace
				for _, limit := range []int64{0, 7} {
					o := registry.ListOptions{Selection: selection(t, target, c.labels, c.fields), Limit: limit}
					got, last := 0, ""
					for {
						l, err := r.List(t.Context(), target, o)
						if err != nil {
							t.Fatal(err)
						}
						for item := range l.Items.All() {
							if item.Key <= last {
								t.Errorf("%s follows %s", item.Key, last)
							}
							last = item.Key
						}
						if got += l.Items.Len(); l.Continue == "" {
							break
						}
						o.Continue = l.Continue
					}
					if got != c.want {
						t.Errorf("%+v by %d: %d", c, limit, got)
					}
				}
				w, err := r.Watch(t.Context(), target, registry.WatchOptions{Selection: selection(t, target, c.labels, c.fields)})
				if err != nil {
					t.Fatal(err)
				}
				got := 0
				for w.Initial() {
					portion, err := w.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					got += len(portion.Events)
				}
				if w.Close(); got != c.want {
					t.Errorf("%+v watched: %d", c, got)
				}
			}
		})
	}
}

// BenchmarkSelective lists 10 of 100,000 objects of 1.7 kB: with the build of the index, with the
// index, and with the index after one write.
func BenchmarkSelective(b *testing.B) {
	r, target, backend := secrets(b, 100_000, 1600)
	list := func(b *testing.B, target registry.Target) {
		b.Helper()
		l, err := r.List(b.Context(), target, registry.ListOptions{Selection: selection(b, target, "", "type=rare")})
		if err != nil || l.Items.Len() != 10 {
			b.Fatal(l.Items.Len(), err)
		}
	}
	b.Run("each looked into", func(b *testing.B) {
		for b.Loop() {
			// Another Definition has indexes of its own.
			other := target
			other.Definition = target.Definition.Continue(func(*resource.Definition) {})
			list(b, other)
		}
	})
	list(b, target)
	b.Run("indexed", func(b *testing.B) {
		for b.Loop() {
			list(b, target)
		}
	})
	b.Run("after a write", func(b *testing.B) {
		key := "/registry/secrets/x/s000001"
		value := []byte(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s000001","namespace":"x"},"type":"common"}`)
		record, err := backend.Get(b.Context(), key, kv.Latest)
		if err != nil {
			b.Fatal(err)
		}
		at := record.Revision
		for b.Loop() {
			if at, err = backend.Commit(b.Context(), kv.Write{Key: key, Value: value, Expect: at}); err != nil {
				b.Fatal(err)
			}
			list(b, target)
		}
	})
}

// The selectable fields of a kind without own ones.
func TestFieldsOfEveryKind(t *testing.T) {
	kinds := resource.NewSet(builtin.Definitions())
	for _, tt := range []struct{ group, plural, fields, want string }{
		{"", "configmaps", "metadata.namespace=a", ""},
		{"networking.k8s.io", "ipaddresses", "metadata.name=a,metadata.namespace=a", ""},
		{"networking.k8s.io", "ipaddresses", "spec=a", `"spec" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"batch", "jobs", "metadata.uid=a", `field label "metadata.uid" not supported for Job`},
		{"resource.k8s.io", "resourceslices", "metadata.namespace=a", "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: metadata.namespace"},
		{"certificates.k8s.io", "podcertificaterequests", "metadata.namespace=a", "field label not supported: metadata.namespace"},
		{"certificates.k8s.io", "podcertificaterequests", "spec.nodeName=a", ""},
		{"", "pods", "metadata.namespace=a", ""},
		{"", "namespaces", "metadata.namespace=a", "field label not supported: metadata.namespace"},
	} {
		d := kinds.Lookup(tt.group, tt.plural)
		_, err := registry.Select(d, d.StorageVersion(), "", tt.fields)
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%s by %s: %s", tt.plural, tt.fields, got)
		}
	}
}
