package openapi

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/openapi/openapitest"
)

func BenchmarkDocumentList(b *testing.B) {
	var c resource.Catalog
	c.Swap(resource.NewSet(openapitest.Many(b, 2000)))
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			openapitest.Benchmark(b, New(&c, Options{}), "/openapi/v3")
		}
	})
	b.Run("warm", func(b *testing.B) {
		h := New(&c, Options{})
		openapitest.Benchmark(b, h, "/openapi/v3")
		b.ReportAllocs()
		for b.Loop() {
			openapitest.Benchmark(b, h, "/openapi/v3")
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	h, _ := newHandler(b, Options{})
	for _, name := range []string{"apis/disc.anykind.dev/v1", "api/v1"} {
		set := h.catalog.Set()
		g, v, _ := h.options.lookup(set, name)
		s := &shared{}
		buildDocument(s, name, g, v)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.SetBytes(int64(len(buildDocument(s, name, g, v))))
			}
		})
	}
	b.Run("first", func(b *testing.B) {
		g, v, _ := h.options.lookup(h.catalog.Set(), "apis/disc.anykind.dev/v1")
		b.ReportAllocs()
		for b.Loop() {
			buildDocument(&shared{}, "apis/disc.anykind.dev/v1", g, v)
		}
	})
}

// The heap in use while the document is written must not grow with the number of kinds.
func BenchmarkWhole(b *testing.B) {
	for _, n := range []int{20, 2000} {
		var c resource.Catalog
		c.Swap(resource.NewSet(openapitest.Many(b, n)))
		for _, form := range []string{v2JSON, v2Protobuf} {
			b.Run(fmt.Sprintf("%d kinds/%s", n, form[strings.LastIndexAny(form, "/+")+1:]), func(b *testing.B) {
				h := New(&c, Options{})
				openapitest.Benchmark(b, h, "/openapi/v2", "Accept: "+form)
				b.ReportAllocs()
				var peak uint64
				for b.Loop() {
					w := &openapitest.Discard{}
					set, shared, _ := h.v2Document(nil)
					runtime.GC()
					before := heap()
					(&Options{}).writeWhole(&heapWatch{Discard: w, every: 4 << 20, peak: &peak, before: before}, form, set, shared, nil)
					b.SetBytes(w.Size)
				}
				b.ReportMetric(float64(peak)/1e6, "peak-MB")
			})
		}
		b.Run(fmt.Sprintf("%d kinds/not modified", n), func(b *testing.B) {
			h := New(&c, Options{})
			r := httptest.NewRequest("GET", "/openapi/v2", nil)
			_, _, d := h.v2Document(nil)
			r.Header.Set("If-None-Match", strconv.Quote(d.hash))
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(&openapitest.Discard{}, r)
			}
		})
	}
}

// heapWatch collects garbage at intervals of bytes and records the remaining heap.
type heapWatch struct {
	*openapitest.Discard
	every        int64
	peak         *uint64
	before, next uint64
}

func (w *heapWatch) Write(p []byte) (int, error) {
	if uint64(w.Size) >= w.next {
		w.next += uint64(w.every)
		runtime.GC()
		*w.peak = max(*w.peak, heap()-min(heap(), w.before))
	}
	return w.Discard.Write(p)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Reading a cached document is much faster than building it.
func BenchmarkPacked(b *testing.B) {
	h, _ := newHandler(b, Options{})
	g, v, _ := h.options.lookup(h.catalog.Set(), "api/v1")
	doc := buildDocument(&shared{}, "api/v1", g, v)
	p := pack(doc)
	b.Run("pack", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			pack(doc)
		}
	})
	b.Run("unpack", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			p.unpack()
		}
	})
	b.ReportMetric(float64(len(doc))/float64(len(p.data)), "times-smaller")
}
