package discovery

import (
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/openapi/openapitest"
)

func BenchmarkAggregated(b *testing.B) {
	var c resource.Catalog
	definitions := openapitest.Many(b, 2000)
	c.Swap(resource.NewSet(definitions))
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			openapitest.Benchmark(b, New(&c, Options{}), "/apis", acceptAggregated)
		}
	})
	b.Run("one changed", func(b *testing.B) {
		h := New(&c, Options{})
		openapitest.Benchmark(b, h, "/apis", acceptAggregated)
		sets := []*resource.Set{resource.NewSet(definitions[1:]), resource.NewSet(definitions)}
		h.catalog = &resource.Catalog{}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h.catalog = &resource.Catalog{}
			h.catalog.Swap(sets[i%2])
			openapitest.Benchmark(b, h, "/apis", acceptAggregated)
		}
	})
	b.Run("warm", func(b *testing.B) {
		h := New(&c, Options{})
		openapitest.Benchmark(b, h, "/apis", acceptAggregated)
		b.ReportAllocs()
		for b.Loop() {
			openapitest.Benchmark(b, h, "/apis", acceptAggregated)
		}
	})
}

func BenchmarkLegacy(b *testing.B) {
	var c resource.Catalog
	c.Swap(resource.NewSet(openapitest.Many(b, 2000)))
	h := New(&c, Options{})
	for _, target := range []string{"/", "/apis", "/apis/g1.disc.anykind.dev/v1"} {
		b.Run(target, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				openapitest.Benchmark(b, h, target)
			}
		})
	}
}
