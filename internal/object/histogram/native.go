package histogram

import (
	"maps"
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/anykind/anykind/internal/object/gate"
)

// finest is the schema of factor: 2^finest buckets double the value.
const finest = 3

// A Native counts values in native buckets. It is not safe for concurrent use. A nil Native counts nothing.
type Native struct {
	schema int32
	zero   uint64
	counts map[int32]int64 // by the index of the bucket, whose upper bound is 2^(index/2^schema)
}

// NewNative returns a Native, or nil without the gate.
func NewNative(gates *gate.Set) *Native {
	if !gates.On(gate.NativeHistograms) {
		return nil
	}
	return &Native{schema: finest, counts: map[int32]int64{}}
}

// Index returns the index of the finest bucket of a positive value.
func Index(value float64) int32 {
	fraction, exponent := math.Frexp(value) // in [0.5, 1)
	i := 0
	for fraction > bounds[i] {
		i++
	}
	return int32(i + (exponent-1)<<finest)
}

// bounds are the upper bounds of the finest buckets between 0.5 and 1.
var bounds = func() (all [1<<finest + 1]float64) {
	for i := range all {
		all[i] = math.Exp2(float64(i)/(1<<finest) - 1)
	}
	return all
}()

// Observe counts a value that is not negative.
func (n *Native) Observe(value float64) {
	switch {
	case n == nil:
	case value <= prometheus.DefNativeHistogramZeroThreshold:
		n.zero++
	default:
		n.Add(Index(value), 1)
	}
}

// Add counts values of a finest bucket.
func (n *Native) Add(index int32, times int64) {
	if n == nil || times == 0 {
		return
	}
	n.counts[coarser(index, finest-n.schema)] += times
	for len(n.counts) > maxBuckets {
		n.coarsen(n.schema - 1)
	}
}

// coarser returns the index of the bucket that contains a bucket of a schema that is finer by steps.
func coarser(index, steps int32) int32 { return (index-1)>>steps + 1 }

// coarsen merges buckets until the schema is not finer than another.
func (n *Native) coarsen(schema int32) {
	if n.schema <= schema {
		return
	}
	merged := make(map[int32]int64, len(n.counts))
	for index, times := range n.counts {
		merged[coarser(index, n.schema-schema)] += times
	}
	n.schema, n.counts = schema, merged
}

// With returns a classic histogram with the native buckets.
func (n *Native) With(classic prometheus.Metric) prometheus.Metric {
	if n == nil {
		return classic
	}
	h := &dto.Histogram{}
	n.write(h)
	return withNative{classic, h}
}

// withNative is a classic histogram with native buckets.
type withNative struct {
	prometheus.Metric
	native *dto.Histogram
}

// Write implements prometheus.Metric.
func (m withNative) Write(to *dto.Metric) error {
	if err := m.Metric.Write(to); err != nil {
		return err
	}
	h := to.Histogram
	h.Schema, h.ZeroThreshold, h.ZeroCount = m.native.Schema, m.native.ZeroThreshold, m.native.ZeroCount
	h.PositiveSpan, h.PositiveDelta = m.native.PositiveSpan, m.native.PositiveDelta
	return nil
}

// read returns the native buckets of a histogram, or nil.
func read(h *dto.Histogram) *Native {
	if h.Schema == nil {
		return nil
	}
	n := &Native{schema: h.GetSchema(), zero: h.GetZeroCount(), counts: map[int32]int64{}}
	index, times, deltas := int32(0), int64(0), h.GetPositiveDelta()
	for _, s := range h.GetPositiveSpan() {
		index += s.GetOffset()
		for range s.GetLength() {
			times += deltas[0]
			deltas = deltas[1:]
			n.counts[index] = times
			index++
		}
	}
	return n
}

// write replaces the native buckets of a histogram.
func (n *Native) write(h *dto.Histogram) {
	schema, threshold, zero := n.schema, prometheus.DefNativeHistogramZeroThreshold, n.zero
	h.Schema, h.ZeroThreshold, h.ZeroCount = &schema, &threshold, &zero
	h.PositiveSpan, h.PositiveDelta = nil, nil
	next, last := int32(0), int64(0)
	for _, index := range slices.Sorted(maps.Keys(n.counts)) {
		times := n.counts[index]
		if times == 0 {
			continue
		}
		if offset := index - next; offset != 0 || len(h.PositiveSpan) == 0 {
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: &offset, Length: new(uint32)})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, times-last)
		next, last = index+1, times
	}
}

// Merge adds the counts of a histogram to those of another one with the same classic buckets. With the sign -1, it subtracts
// them.
func Merge(to, more *dto.Histogram, sign int64) {
	count, sum := to.GetSampleCount()+uint64(sign)*more.GetSampleCount(), to.GetSampleSum()+float64(sign)*more.GetSampleSum()
	to.SampleCount, to.SampleSum = &count, &sum
	for i, b := range to.GetBucket() {
		times := b.GetCumulativeCount() + uint64(sign)*more.GetBucket()[i].GetCumulativeCount()
		b.CumulativeCount = &times
	}
	n, other := read(to), read(more)
	if n == nil || other == nil {
		return
	}
	n.coarsen(other.schema)
	other.coarsen(n.schema)
	n.zero += uint64(sign) * other.zero
	for index, times := range other.counts {
		n.counts[index] += sign * times
	}
	n.write(to)
}
