package discovery

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/resource"
)

// many returns n custom resources, ten to a group.
func many(b *testing.B, n int) []*resource.Definition {
	out := nativeDefinitions(b)
	template := custom(b, kites)
	for i := range n {
		d := *template
		d.Group = fmt.Sprintf("g%d.disc.anykind.dev", i/10)
		d.Plural, d.Kind = fmt.Sprintf("kites%d", i), fmt.Sprintf("Kite%d", i)
		d.Versions = nil
		for _, v := range template.Versions {
			d.Versions = append(d.Versions, &resource.Version{
				Name: v.Name, Served: v.Served, Storage: v.Storage, Schema: v.Schema,
				Subresources: v.Subresources, Fingerprint: d.Plural,
			})
		}
		out = append(out, resource.New(d))
	}
	return out
}

func benchmark(b *testing.B, h *Handler, target string, headers ...string) {
	r := httptest.NewRequest("GET", target, nil)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := &discard{header: http.Header{}}
	h.ServeHTTP(w, r)
	if w.code != 0 && w.code != 200 {
		b.Fatalf("%s: %d", target, w.code)
	}
	b.SetBytes(w.size)
}

// discard is a ResponseWriter that counts.
type discard struct {
	header http.Header
	code   int
	size   int64
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(code int)        { d.code = code }
func (d *discard) Write(p []byte) (int, error) { d.size += int64(len(p)); return len(p), nil }

func BenchmarkAggregated(b *testing.B) {
	var c resource.Catalog
	definitions := many(b, 2000)
	c.Swap(resource.NewSet(definitions))
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			benchmark(b, New(&c, Options{}), "/apis", acceptAggregated)
		}
	})
	b.Run("one changed", func(b *testing.B) {
		h := New(&c, Options{})
		benchmark(b, h, "/apis", acceptAggregated)
		sets := []*resource.Set{resource.NewSet(definitions[1:]), resource.NewSet(definitions)}
		h.catalog = &resource.Catalog{}
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			h.catalog = &resource.Catalog{}
			h.catalog.Swap(sets[i%2])
			benchmark(b, h, "/apis", acceptAggregated)
		}
	})
	b.Run("warm", func(b *testing.B) {
		h := New(&c, Options{})
		benchmark(b, h, "/apis", acceptAggregated)
		b.ReportAllocs()
		for b.Loop() {
			benchmark(b, h, "/apis", acceptAggregated)
		}
	})
}

func BenchmarkDocumentList(b *testing.B) {
	var c resource.Catalog
	c.Swap(resource.NewSet(many(b, 2000)))
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			benchmark(b, New(&c, Options{}), "/openapi/v3")
		}
	})
	b.Run("warm", func(b *testing.B) {
		h := New(&c, Options{})
		benchmark(b, h, "/openapi/v3")
		b.ReportAllocs()
		for b.Loop() {
			benchmark(b, h, "/openapi/v3")
		}
	})
}

func BenchmarkDocument(b *testing.B) {
	h, _ := newHandler(b, Options{})
	for _, name := range []string{"apis/disc.anykind.dev/v1", "api/v1"} {
		set := h.catalog.Set()
		g, v, _ := lookup(set, name)
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
		g, v, _ := lookup(h.catalog.Set(), "apis/disc.anykind.dev/v1")
		b.ReportAllocs()
		for b.Loop() {
			buildDocument(&shared{}, "apis/disc.anykind.dev/v1", g, v)
		}
	})
}

// The heap that is in use while the document is written is what counts with many
// kinds: it is not to grow with them.
func BenchmarkWhole(b *testing.B) {
	for _, n := range []int{20, 2000} {
		var c resource.Catalog
		c.Swap(resource.NewSet(many(b, n)))
		for _, form := range []string{v2JSON, v2Protobuf} {
			b.Run(fmt.Sprintf("%d kinds/%s", n, form[strings.LastIndexAny(form, "/+")+1:]), func(b *testing.B) {
				h := New(&c, Options{})
				benchmark(b, h, "/openapi/v2", "Accept: "+form)
				b.ReportAllocs()
				var peak uint64
				for b.Loop() {
					w := &discard{header: http.Header{}}
					set, shared, _ := h.whole()
					runtime.GC()
					before := heap()
					if err := writeWhole(&heapWatch{discard: w, every: 4 << 20, peak: &peak, before: before}, form, set, shared); err != nil {
						b.Fatal(err)
					}
					b.SetBytes(w.size)
				}
				b.ReportMetric(float64(peak)/1e6, "peak-MB")
			})
		}
		b.Run(fmt.Sprintf("%d kinds/not modified", n), func(b *testing.B) {
			h := New(&c, Options{})
			r := httptest.NewRequest("GET", "/openapi/v2", nil)
			_, _, tag := h.whole()
			r.Header.Set("If-None-Match", tag.etag)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(&discard{header: http.Header{}}, r)
			}
		})
	}
}

// heapWatch collects garbage every so many bytes and notes what is left.
type heapWatch struct {
	*discard
	every        int64
	peak         *uint64
	before, next uint64
}

func (w *heapWatch) Write(p []byte) (int, error) {
	if uint64(w.size) >= w.next {
		w.next += uint64(w.every)
		runtime.GC()
		*w.peak = max(*w.peak, heap()-min(heap(), w.before))
	}
	return w.discard.Write(p)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkLegacy(b *testing.B) {
	var c resource.Catalog
	c.Swap(resource.NewSet(many(b, 2000)))
	h := New(&c, Options{})
	for _, target := range []string{"/", "/apis", "/apis/g1.disc.anykind.dev/v1"} {
		b.Run(target, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				benchmark(b, h, target)
			}
		})
	}
}
