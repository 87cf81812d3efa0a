package rest

import (
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
	want := [sentBuckets + 1]uint64{0: 2, 1: 2, 2: 1, 7: 1, 8: 2}
	var frames, behind []byte
	bytes := uint64(0)
	for _, size := range sizes {
		frame := []byte(strings.Repeat("x", size))
		frames, behind = append(frames, frame...), appendSize(behind, frame)
		bytes += uint64(size)
	}
	s := sent{native: new(sentNative)}
	if left := s.cutSizes(append(slices.Clone(frames), behind...), len(sizes)); !slices.Equal(left, frames) {
		t.Errorf("%d bytes are left, want %d", len(left), len(frames))
	}
	if left := s.cutSizes(frames[:1], 1); len(left) != 1 {
		t.Errorf("%d bytes are left of a single event", len(left))
	}
	want[0]++
	for i := range want {
		if got := s.buckets[i].Load(); got != want[i] {
			t.Errorf("bucket %d: %d, want %d", i, got, want[i])
		}
	}
	if got := s.bytes.Load(); got != bytes+1 {
		t.Errorf("%d bytes, want %d", got, bytes+1)
	}
	native := histogram.NewNative(nil)
	for _, size := range append(sizes, 1) {
		native.Observe(float64(size))
	}
	if got, want := written(t, s.native.counts(nil)), written(t, native); got != want {
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
