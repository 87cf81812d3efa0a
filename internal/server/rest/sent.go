package rest

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/histogram"
	"github.com/anykind/anykind/internal/object/resource"
)

// sentEvents counts the events that watches sent, under Kubernetes' names. Events are many, and
// most go to many watches at once, so they are tallied first and then added together.
type sentEvents struct {
	catalog *resource.Catalog
	gates   *gate.Set
	mu      sync.Mutex
	all     map[sentKey]*sent
}

type sentKey struct{ group, version, plural string }

const (
	// smallestBucket is the limit of the first bucket; each further one is twice as large.
	smallestBucket = 1024
	sentBuckets    = 8
)

// A tally counts events by size. The last bucket has the events that exceed all others.
type tally struct {
	buckets [sentBuckets + 1]uint64
	bytes   uint64
}

func (t *tally) add(size int) {
	bucket := 0
	if size > smallestBucket {
		bucket = min(bits.Len(uint(size-1)/smallestBucket), sentBuckets)
	}
	t.buckets[bucket]++
	t.bytes += uint64(size)
}

// sent counts the events of a resource.
type sent struct {
	buckets [sentBuckets + 1]atomic.Uint64
	bytes   atomic.Uint64
	native  *sentNative // nil without native histograms
}

// sentNative counts events by the buckets of a native histogram, in groups of those that double the size.
type sentNative [32]atomic.Pointer[sentGroup]

type sentGroup [8]atomic.Int64

func (n *sentNative) add(size int) {
	index := int(histogram.Index(float64(size)))
	group := &n[min(index/len(sentGroup{}), len(n)-1)]
	if group.Load() == nil {
		group.CompareAndSwap(nil, new(sentGroup))
	}
	group.Load()[index%len(sentGroup{})].Add(1)
}

// counts returns the counts for a scrape.
func (n *sentNative) counts(gates *gate.Set) *histogram.Native {
	all := histogram.NewNative(gates)
	for i := range n {
		if group := n[i].Load(); group != nil {
			for j := range group {
				if times := group[j].Load(); times > 0 {
					all.Add(int32(i*len(group)+j), times)
				}
			}
		}
	}
	return all
}

// count counts an event in a tally of s.
func (s *sent) count(t *tally, size int) {
	t.add(size)
	if s.native != nil {
		s.native.add(size)
	}
}

func (s *sent) add(t *tally) {
	for i, n := range t.buckets {
		if n > 0 {
			s.buckets[i].Add(n)
		}
	}
	s.bytes.Add(t.bytes)
}

func (s *sent) addOne(size int) {
	var t tally
	s.count(&t, size)
	s.add(&t)
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
		if e.gates.On(gate.NativeHistograms) {
			s.native = new(sentNative)
		}
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
		buckets, n := map[float64]uint64{}, uint64(0)
		for i := range s.buckets {
			n += s.buckets[i].Load()
			if i < sentBuckets {
				buckets[float64(int(smallestBucket)<<i)] = n
			}
		}
		labels := []string{key.group, key.version, key.plural}
		to <- prometheus.MustNewConstMetric(sentDesc, prometheus.CounterValue, float64(n), labels...)
		sizes := prometheus.MustNewConstHistogram(sentSizesDesc, n, float64(s.bytes.Load()), buckets, labels...)
		if s.native != nil {
			sizes = s.native.counts(e.gates).With(sizes)
		}
		to <- sizes
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
		s.addOne(len(frames))
		return frames
	}
	var t tally
	end := len(frames) - n*sizeBytes
	for sizes := frames[end:]; len(sizes) > 0; sizes = sizes[sizeBytes:] {
		s.count(&t, int(binary.LittleEndian.Uint32(sizes)))
	}
	s.add(&t)
	return frames[:end]
}
