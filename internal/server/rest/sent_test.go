package rest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/anykind/anykind/internal/object/histogram"
)

// Events that are sent together are counted singly, by their sizes.
func TestSentSizes(t *testing.T) {
	sizes := []int{1, 1024, 1025, 2048, 2049, 128 << 10, 128<<10 + 1, 1 << 24}
	var frames, behind []byte
	bytes := uint64(0)
	for _, size := range sizes {
		frame := []byte(strings.Repeat("x", size))
		frames, behind = append(frames, frame...), appendSize(behind, frame)
		bytes += uint64(size)
	}
	s := sent{}
	if left := s.cutSizes(append(slices.Clone(frames), behind...), len(sizes)); !slices.Equal(left, frames) {
		t.Errorf("%d bytes are left, want %d", len(left), len(frames))
	}
	if left := s.cutSizes(frames[:1], 1); len(left) != 1 {
		t.Errorf("%d bytes are left of a single event", len(left))
	}
	all, classic, native := s.counts(nil)
	want := map[float64]uint64{1 << 10: 3, 1 << 11: 5, 1 << 12: 6, 1 << 13: 6, 1 << 14: 6, 1 << 15: 6, 1 << 16: 6, 1 << 17: 7}
	if all != 9 || !maps.Equal(classic, want) {
		t.Errorf("%d events, and %v up to the sizes, want %v", all, classic, want)
	}
	if got := s.bytes.Load(); got != bytes+1 {
		t.Errorf("%d bytes, want %d", got, bytes+1)
	}
	observed := histogram.NewNative(nil)
	for _, size := range append(sizes, 1) {
		observed.Observe(float64(size))
	}
	if got, want := written(t, native), written(t, observed); got != want {
		t.Errorf("native buckets %s, want %s", got, want)
	}
}

// written describes native buckets.
func written(t *testing.T, n *histogram.Native) string {
	t.Helper()
	var out dto.Metric
	if err := n.With(prometheus.MustNewConstHistogram(sentSizesDesc, 0, 0, nil, "", "", "")).Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
