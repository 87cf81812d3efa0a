package histogram

import (
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/anykind/anykind/internal/object/gate"
)

// The gate decides whether a histogram has native buckets.
func TestGate(t *testing.T) {
	for _, on := range []bool{true, false} {
		gates := gate.With(map[gate.Name]bool{gate.NativeHistograms: on})
		h := written(t, one(gates))
		if got := h.Schema != nil; got != on || len(h.GetBucket()) != len(prometheus.DefBuckets) {
			t.Errorf("with the gate %v: native buckets %v, %d classic ones", on, got, len(h.GetBucket()))
		}
		if n := NewNative(gates); (n != nil) != on {
			t.Errorf("with the gate %v: NewNative returns %v", on, n)
		}
	}
}

func one(gates *gate.Set) prometheus.Histogram {
	return NewVec(gates, prometheus.HistogramOpts{Name: "a", Buckets: prometheus.DefBuckets}, nil).WithLabelValues().(prometheus.Histogram)
}

func written(t *testing.T, m prometheus.Metric) *dto.Histogram {
	t.Helper()
	out := &dto.Metric{}
	if err := m.Write(out); err != nil {
		t.Fatal(err)
	}
	return out.GetHistogram()
}

// pair counts the same values with the client library and with a Native.
type pair struct {
	theirs prometheus.Histogram
	ours   *Native
}

func newPair() *pair {
	return &pair{one(nil), NewNative(nil)}
}

func (p *pair) observe(v float64) {
	p.theirs.Observe(v)
	p.ours.Observe(v)
}

// check compares the buckets of both, and returns the histogram of the Native.
func (p *pair) check(t *testing.T) *dto.Histogram {
	t.Helper()
	theirs := written(t, p.theirs)
	ours := written(t, p.ours.With(prometheus.MustNewConstHistogram(prometheus.NewDesc("a", "", nil, nil), theirs.GetSampleCount(), theirs.GetSampleSum(), map[float64]uint64{})))
	same(t, ours, theirs)
	return ours
}

func same(t *testing.T, ours, theirs *dto.Histogram) {
	t.Helper()
	a, b := read(ours), read(theirs)
	maps.DeleteFunc(b.counts, func(_ int32, times int64) bool { return times == 0 })
	if a.schema != b.schema || a.zero != b.zero || !maps.Equal(a.counts, b.counts) {
		t.Errorf("native buckets are %v, want %v", *a, *b)
	}
	if ours.GetSampleCount() != theirs.GetSampleCount() {
		t.Errorf("count is %d, want %d", ours.GetSampleCount(), theirs.GetSampleCount())
	}
}

// A Native counts as a histogram of the client library, also beyond the largest number of buckets.
func TestNative(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, spread := range []float64{0, 1, 5, 20, 100} {
		p := newPair()
		for _, v := range []float64{0, 1, 2, 0.5, 0.75, 1024, 1e-3} {
			p.observe(v)
		}
		for range 5000 {
			p.observe(math.Exp(spread * r.NormFloat64()))
		}
		p.check(t)
	}
	newPair().check(t)
}

// Merge adds and subtracts histograms, of different resolutions, too.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, spread := range [][2]float64{{1, 1}, {1, 50}, {50, 1}} {
		first, second, all := newPair(), newPair(), newPair()
		for range 1000 {
			a, b := math.Exp(spread[0]*r.NormFloat64()), math.Exp(spread[1]*r.NormFloat64())
			first.observe(a)
			second.observe(b)
			all.observe(a)
			all.observe(b)
		}
		sum, want := written(t, first.theirs), written(t, all.theirs)
		Merge(sum, written(t, second.theirs), 1)
		n := read(sum)
		n.coarsen(want.GetSchema())
		n.write(sum)
		same(t, sum, want)

		rest, left := written(t, all.theirs), written(t, second.theirs)
		Merge(rest, written(t, first.theirs), -1)
		n = read(left)
		n.coarsen(rest.GetSchema())
		n.write(left)
		same(t, rest, left)
	}
	classic := &dto.Histogram{}
	Merge(classic, written(t, newPair().theirs), 1)
	if classic.Schema != nil {
		t.Error("a classic histogram becomes native")
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, on := range map[string]bool{"native": true, "classic": false} {
		b.Run(name, func(b *testing.B) {
			h := one(gate.With(map[gate.Name]bool{gate.NativeHistograms: on}))
			values := make([]float64, 1024)
			for i := range values {
				values[i] = rand.ExpFloat64() / 500
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				h.Observe(values[i%len(values)])
			}
		})
	}
}
