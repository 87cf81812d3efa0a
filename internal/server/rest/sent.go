package rest

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/histogram"
	"github.com/anykind/anykind/internal/object/resource"
)

// sentEvents counts the events that watches sent, under Kubernetes' names.
type sentEvents struct {
	catalog *resource.Catalog
	gates   *gate.Set
	mu      sync.Mutex
	all     map[sentKey]*sent
}

type sentKey struct{ group, version, plural string }

// sent counts the events of a resource by size, in groups of buckets that double it. All forms of the histogram are
// computed from these counters, so that they agree.
type sent struct {
	groups [32]atomic.Pointer[sentGroup]
	bytes  atomic.Uint64
}

// A sentGroup has the finest buckets of a native histogram between a size and its double.
type sentGroup [8]atomic.Uint64

func (s *sent) add(size int) {
	index := int(histogram.Index(float64(size)))
	group := &s.groups[min(index/len(sentGroup{}), len(s.groups)-1)]
	if group.Load() == nil {
		group.CompareAndSwap(nil, new(sentGroup))
	}
	group.Load()[index%len(sentGroup{})].Add(1)
	s.bytes.Add(uint64(size))
}

const (
	// smallestSize is the limit of the first classic bucket, as a power of two; each further one is twice as large.
	smallestSize = 10
	sentBuckets  = 8
)

// counts returns the number of events, those up to the sizes of the classic buckets, and the native buckets.
func (s *sent) counts(gates *gate.Set) (all uint64, classic map[float64]uint64, native *histogram.Native) {
	classic, native = map[float64]uint64{}, histogram.NewNative(gates)
	for i := range s.groups {
		group := s.groups[i].Load()
		if group == nil {
			group = new(sentGroup)
		}
		for j := range group {
			times := group[j].Load()
			all += times
			native.Add(int32(i*len(group)+j), int64(times))
			if j == 0 && i >= smallestSize && i < smallestSize+sentBuckets { // the bucket ends at a power of two
				classic[float64(int(1)<<i)] = all
			}
		}
	}
	return all, classic, native
}

// of returns the counters of a resource.
func (e *sentEvents) of(d *resource.Definition, version string) *sent {
	key := sentKey{d.Group, version, d.Plural}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.all[key]
	if s == nil {
		if e.all == nil {
			e.all = map[sentKey]*sent{}
		}
		s = &sent{}
		e.all[key] = s
	}
	return s
}

var (
	sentLabels                         = []string{"group", "version", "resource"}
	sentDesc                           = prometheus.NewDesc("apiserver_watch_events_total", "Watch events sent, by group, version and resource.", sentLabels, nil)
	sentSizesDesc                      = prometheus.NewDesc("apiserver_watch_events_sizes", "Sizes of sent watch events in bytes, by group, version and resource.", sentLabels, nil)
	_             prometheus.Collector = (*sentEvents)(nil)
)

// Describe implements prometheus.Collector.
func (e *sentEvents) Describe(to chan<- *prometheus.Desc) { to <- sentDesc; to <- sentSizesDesc }

// Collect implements prometheus.Collector. It drops removed resources.
func (e *sentEvents) Collect(to chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	set := e.catalog.Set()
	for key, s := range e.all {
		if set.Lookup(key.group, key.plural) == nil {
			delete(e.all, key)
			continue
		}
		labels := []string{key.group, key.version, key.plural}
		n, classic, native := s.counts(e.gates)
		to <- prometheus.MustNewConstMetric(sentDesc, prometheus.CounterValue, float64(n), labels...)
		to <- native.With(prometheus.MustNewConstHistogram(sentSizesDesc, n, float64(s.bytes.Load()), classic, labels...))
	}
}

// Collectors returns the metrics of the Handler.
func (h *Handler) Collectors() []prometheus.Collector {
	all := []prometheus.Collector{&h.sent}
	if h.shards != nil {
		all = append(all, h.shards.watches, h.shards.missed)
	}
	return all
}

// sizeBytes is the length of an encoded size behind frames.
const sizeBytes = 4

// appendSize adds the size of a frame to sizes.
func appendSize(sizes []byte, frame []byte) []byte {
	return binary.LittleEndian.AppendUint32(sizes, uint32(len(frame)))
}

// cutSizes removes the sizes of n events behind frames, and counts them.
func (s *sent) cutSizes(frames []byte, n int) []byte {
	if n == 1 {
		s.add(len(frames))
		return frames
	}
	end := len(frames) - n*sizeBytes
	for sizes := frames[end:]; len(sizes) > 0; sizes = sizes[sizeBytes:] {
		s.add(int(binary.LittleEndian.Uint32(sizes)))
	}
	return frames[:end]
}
