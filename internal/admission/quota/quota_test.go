package quota_test

import (
	"testing"

	"github.com/anykind/anykind/internal/admission/quota"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// The cost of the plugin for a create without a quota.
func BenchmarkNoQuota(b *testing.B) {
	core := resource.NewSet(builtin.Definitions())
	cache := watchcache.New(memkv.New(memkv.Options{}), watchcache.Options{})
	go cache.Run(b.Context())
	p, err := quota.New(quota.Options{Cache: cache, Core: core, Evaluators: usage.New(cache, core), Turns: &quota.Turns{}})
	if err != nil {
		b.Fatal(err)
	}
	a := &registry.Admission{Operation: registry.Create, Object: object.Tree{}, Target: registry.StorageTarget(core.Lookup("", "configmaps"), "default", "a")}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Resolve(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}
