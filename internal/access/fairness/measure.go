package fairness

import (
	"math"
	"time"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/histogram"
)

// A flow counts the requests of a FlowSchema in a level. It is guarded by the level.
type flow struct {
	schema             string
	dispatched, noRoom int
	rejected           [reasons]int
	waiting, waitSeats int
	serving, seats     int
	waits              [2]buckets // of rejected and of dispatched requests
	runs, watches      buckets    // durations; for a watch, until it has begun
	lengths            buckets    // of queues, after a request was added
	estimated          buckets    // seats
	watchers           buckets    // of the objects of writes
}

// newFlow returns the flow of a FlowSchema without requests.
func newFlow(schema string, gates *gate.Set) *flow {
	f := &flow{schema: schema}
	for _, h := range []*buckets{&f.waits[0], &f.waits[1], &f.runs, &f.watches, &f.lengths, &f.estimated, &f.watchers} {
		h.native = histogram.NewNative(gates)
	}
	return f
}

// reasons is the number of reasons for a rejection.
const reasons = 3

// reasonNames are the reasons, in the order of flow.rejected.
var reasonNames = [reasons]string{overLimit, queueFull, timedOut}

func (f *flow) serve(t *Turn, now time.Time) {
	f.dispatched++
	f.serving++
	f.seats += t.work.seats()
	if !t.level.exempt {
		f.waits[1].observe(durationBounds, now.Sub(t.arrived).Seconds())
	}
}

func (f *flow) reject(t *Turn, now time.Time, reason string) {
	for i, name := range reasonNames {
		if name == reason {
			f.rejected[i]++
		}
	}
	f.waits[0].observe(durationBounds, now.Sub(t.arrived).Seconds())
}

// end counts a request that was answered. Its seats may be in use for longer.
func (f *flow) end(t *Turn, now time.Time) {
	f.serving--
	h := &f.runs
	if t.request.Info.IsWatch() {
		h = &f.watches
	}
	h.observe(durationBounds, now.Sub(t.started).Seconds())
}

// The bounds of buckets, as in Kubernetes.
var (
	durationBounds = []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30}
	lengthBounds   = []float64{0, 10, 25, 50, 100, 250, 500, 1000}
	seatBounds     = []float64{1, 2, 4, 8, 16, 32, 64, 100}
	watcherBounds  = []float64{0, 1, 10, 100, 1000, 10000}
	requestRatios  = []float64{0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 1}
	seatRatios     = []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1}
	demandRatios   = []float64{0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.7, 2, 2.8, 4, 6}
)

// buckets count values as a histogram. They cost less than a histogram of the client library, because a level is locked
// while it counts.
type buckets struct {
	counts []uint64 // by bucket; the last one has no bound
	sum    float64
	native *histogram.Native
}

func (h *buckets) observe(bounds []float64, value float64) {
	h.weigh(bounds, value, 1)
	h.native.Observe(value)
}

// weigh counts a value several times.
func (h *buckets) weigh(bounds []float64, value float64, times uint64) {
	if h.counts == nil {
		h.counts = make([]uint64, len(bounds)+1)
	}
	i := 0
	for i < len(bounds) && value > bounds[i] {
		i++
	}
	h.counts[i] += times
	h.sum += value * float64(times)
}

// A ratio is a histogram of a number in relation to a limit, each value weighed by the nanoseconds
// for which it was true.
type ratio struct {
	buckets
	bounds    []float64
	since     time.Time
	value, of int
}

func (r *ratio) begin(now time.Time, bounds []float64) { r.bounds, r.since, r.of = bounds, now, 1 }

func (r *ratio) set(now time.Time, value int) {
	if value != r.value {
		r.count(now)
		r.value = value
	}
}

func (r *ratio) divide(now time.Time, of int) {
	if of != r.of {
		r.count(now)
		r.of = of
	}
}

// count counts the present value up to now.
func (r *ratio) count(now time.Time) {
	if d := now.Sub(r.since); d > 0 {
		r.weigh(r.bounds, float64(r.value)/float64(r.of), uint64(d))
		r.since = now
	}
}

// demand has the statistics of the seats that a level uses or could use, for the limits of the next
// period.
type demand struct {
	since            time.Time
	value, most      float64
	time, sum, power float64 // integrals of 1, the value and its square over the seconds of the period
	average, spread  float64 // in the last period
	peak             int     // in the last period
	smoothed         float64
}

// smoothing is the share of the former value in the smoothed demand. Its half-life is five minutes.
const smoothing = 0.977

func (d *demand) begin(now time.Time) { d.since = now }

func (d *demand) set(now time.Time, value int) {
	d.integrate(now)
	d.value = float64(value)
	d.most = max(d.most, d.value)
}

func (d *demand) integrate(now time.Time) {
	s := now.Sub(d.since).Seconds()
	d.since = now
	d.time += s
	d.sum += s * d.value
	d.power += s * d.value * d.value
}

// turn ends the period.
func (d *demand) turn(now time.Time) {
	d.integrate(now)
	d.peak = int(d.most)
	if d.time > 0 {
		d.average, d.spread = d.sum/d.time, 0
		if variance := d.power/d.time - d.average*d.average; variance > 0 {
			d.spread = math.Sqrt(variance)
		}
		usual := d.average + d.spread
		d.smoothed = max(usual, smoothing*d.smoothed+(1-smoothing)*usual)
	}
	d.time, d.sum, d.power, d.most = 0, 0, 0, d.value
}

// drops derives Retry-After from the requests rejected in the last seconds. It doubles while many
// are rejected, and then returns step by step to a second.
type drops struct {
	now     int64 // the second of count
	count   int64
	past    []second
	after   int64 // seconds; 0 is 1
	doubled int64 // the second of the last increase
}

// A second has the number of requests rejected in it.
type second struct{ at, count int64 }

// longestRetry is the largest Retry-After in seconds.
const longestRetry = 32

// add counts a rejected request and returns its Retry-After in seconds.
func (d *drops) add(now time.Time) int64 {
	d.after = max(d.after, 1)
	if s := now.Unix(); s != d.now {
		d.past = append(d.past, second{d.now, d.count})
		old := 0
		for old < len(d.past) && s-d.past[old].at > min(2*d.after, longestRetry) {
			old++
		}
		d.past = d.past[old:]
		d.now, d.count = s, 0
		d.adapt()
	}
	d.count++
	return d.after
}

func (d *drops) adapt() {
	var recent int64
	for _, s := range d.past {
		if d.now-s.at <= d.after {
			recent += s.count
		}
	}
	switch {
	case recent >= 3*d.after && d.now-d.doubled >= d.after:
		d.after, d.doubled = min(2*d.after, longestRetry), d.now
	case recent < d.after && d.after > 1:
		d.after--
	}
}
