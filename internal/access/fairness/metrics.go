package fairness

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Labels of metrics.
const (
	ofLevel  = "priority_level"
	ofSchema = "flow_schema"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("apiserver_flowcontrol_"+name, help, labels, nil)
}

// Metrics of a FlowSchema in a level.
var (
	dispatchedDesc = desc("dispatched_requests_total", "Requests that were served.", ofLevel, ofSchema)
	rejectedDesc   = desc("rejected_requests_total", "Requests that were rejected, by reason.", ofLevel, ofSchema, "reason")
	noRoomDesc     = desc("request_dispatch_no_accommodation_total", "Attempts to serve a waiting request for which there were not enough seats.", ofLevel, ofSchema)
	waitingDesc    = desc("current_inqueue_requests", "Requests that wait in queues.", ofLevel, ofSchema)
	waitSeatsDesc  = desc("current_inqueue_seats", "Seats that requests in queues wait for.", ofLevel, ofSchema)
	servingDesc    = desc("current_executing_requests", "Requests that are served; watches only until they have begun.", ofLevel, ofSchema)
	seatsDesc      = desc("current_executing_seats", "Seats in use.", ofLevel, ofSchema)
	waitsDesc      = desc("request_wait_duration_seconds", "Time in a queue, of served and of rejected requests.", ofLevel, ofSchema, "execute")
	runsDesc       = desc("request_execution_seconds", "Time for which a request was served; for a watch, until it had begun.", ofLevel, ofSchema, "type")
	lengthsDesc    = desc("request_queue_length_after_enqueue", "Length of a queue after a request was added.", ofLevel, ofSchema)
	estimatedDesc  = desc("work_estimated_seats", "Estimated seats of requests.", ofLevel, ofSchema)
	watchersDesc   = desc("watch_count_samples", "Watches that may get the event of a write.", ofLevel, ofSchema)
)

// Metrics of a level.
var (
	nominalDesc  = desc("nominal_limit_seats", "Configured number of seats.", ofLevel)
	lowestDesc   = desc("lower_limit_seats", "Configured least number of seats: the others can be lent.", ofLevel)
	highestDesc  = desc("upper_limit_seats", "Configured largest number of seats, with borrowed ones.", ofLevel)
	limitDesc    = desc("current_limit_seats", "Present number of seats.", ofLevel)
	targetDesc   = desc("target_seats", "Seats that the level should get.", ofLevel)
	peakDesc     = desc("demand_seats_high_watermark", "Largest demand for seats in the last period of ten seconds.", ofLevel)
	averageDesc  = desc("demand_seats_average", "Average demand for seats in the last period.", ofLevel)
	spreadDesc   = desc("demand_seats_stdev", "Standard deviation of the demand for seats in the last period.", ofLevel)
	smoothedDesc = desc("demand_seats_smoothed", "Demand for seats, smoothed over periods.", ofLevel)
	fairDesc     = desc("seat_fair_frac", "Multiple of its demand that each level gets, within its bounds.")

	progressDesc   = desc("current_r", "Virtual time.", ofLevel)
	atDispatchDesc = desc("dispatch_r", "Virtual time of the last dispatch from a queue.", ofLevel)
	startDesc      = desc("latest_s", "Virtual start of the request that was dispatched last.", ofLevel)

	requestRatioDesc = desc("priority_level_request_utilization", "Share of the nanoseconds in which so many requests, relative to the limit, waited or were served.", "phase", ofLevel)
	seatRatioDesc    = prometheus.NewDesc("apiserver_flowcontrol_priority_level_seat_utilization", "Share of the nanoseconds in which so many seats, relative to the limit, were in use.", []string{ofLevel}, prometheus.Labels{"phase": "executing"})
	demandRatioDesc  = desc("demand_seats", "Share of the nanoseconds in which so many seats, relative to the limit, were demanded.", ofLevel)
)

// A collector collects the metrics of a Dispatcher. A scrape makes them.
type collector struct{ *Dispatcher }

// Collectors returns the metrics; none for nil.
func (d *Dispatcher) Collectors() []prometheus.Collector {
	if d == nil {
		return nil
	}
	return []prometheus.Collector{collector{d}}
}

// Describe implements prometheus.Collector. The metrics are not checked.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	c.mu.Lock()
	fair := c.fair
	shares := c.config.Load().shares
	for _, s := range shares {
		name := s.level.name
		gauge(nominalDesc, float64(s.nominal), name)
		gauge(lowestDesc, float64(s.lowest), name)
		gauge(highestDesc, float64(s.highest), name)
		gauge(limitDesc, float64(s.limit), name)
		gauge(targetDesc, s.target, name)
	}
	c.mu.Unlock()
	gauge(fairDesc, fair)
	for _, s := range shares {
		s.level.collect(to, gauge)
	}
}

func (l *level) collect(to chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string)) {
	now := l.lock()
	defer l.mu.Unlock()
	d := &l.demand
	gauge(peakDesc, float64(d.peak), l.name)
	gauge(averageDesc, d.average, l.name)
	gauge(spreadDesc, d.spread, l.name)
	gauge(smoothedDesc, d.smoothed, l.name)

	at := &l.atDispatch
	gauge(progressDesc, l.progress.seconds(), l.name)
	gauge(atDispatchDesc, at.progress.seconds(), l.name)
	gauge(startDesc, at.start.seconds(), l.name)

	for _, r := range []*ratio{&l.waitRatio, &l.servedRatio, &l.seatRatio, &l.demandRatio} {
		r.count(now)
	}
	l.waitRatio.collect(to, requestRatioDesc, requestRatios, "waiting", l.name)
	l.servedRatio.collect(to, requestRatioDesc, requestRatios, "executing", l.name)
	l.seatRatio.collect(to, seatRatioDesc, seatRatios, l.name)
	l.demandRatio.collect(to, demandRatioDesc, demandRatios, l.name)

	for _, f := range l.flows {
		f.collect(to, gauge, l.name)
	}
}

func (f *flow) collect(to chan<- prometheus.Metric, gauge func(*prometheus.Desc, float64, ...string), level string) {
	count := func(d *prometheus.Desc, n int, labels ...string) {
		if n > 0 {
			to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), append([]string{level, f.schema}, labels...)...)
		}
	}
	count(dispatchedDesc, f.dispatched)
	count(noRoomDesc, f.noRoom)
	for i, n := range f.rejected {
		count(rejectedDesc, n, reasonNames[i])
	}
	if f.dispatched > 0 {
		gauge(servingDesc, float64(f.serving), level, f.schema)
		gauge(seatsDesc, float64(f.seats), level, f.schema)
	}
	if f.lengths.counts != nil {
		gauge(waitingDesc, float64(f.waiting), level, f.schema)
		gauge(waitSeatsDesc, float64(f.waitSeats), level, f.schema)
	}
	f.waits[0].collect(to, waitsDesc, durationBounds, level, f.schema, "false")
	f.waits[1].collect(to, waitsDesc, durationBounds, level, f.schema, "true")
	f.runs.collect(to, runsDesc, durationBounds, level, f.schema, "regular")
	f.watches.collect(to, runsDesc, durationBounds, level, f.schema, "watch")
	f.lengths.collect(to, lengthsDesc, lengthBounds, level, f.schema)
	f.estimated.collect(to, estimatedDesc, seatBounds, level, f.schema)
	f.watchers.collect(to, watchersDesc, watcherBounds, level, f.schema)
}

// collect sends the histogram, unless it is empty.
func (h *buckets) collect(to chan<- prometheus.Metric, d *prometheus.Desc, bounds []float64, labels ...string) {
	if h.counts == nil {
		return
	}
	cumulative := make(map[float64]uint64, len(bounds))
	var sum uint64
	for i, b := range bounds {
		sum += h.counts[i]
		cumulative[b] = sum
	}
	to <- h.native.With(prometheus.MustNewConstHistogram(d, sum+h.counts[len(bounds)], h.sum, cumulative, labels...))
}

// InFlight returns the numbers of requests that wait and that are served, of those that read and
// those that write.
func (d *Dispatcher) InFlight() (waiting, serving [2]int) {
	for _, s := range d.config.Load().shares {
		l := s.level
		l.mu.Lock()
		l.each(func(_ int, t *Turn) {
			kind := 1
			if t.request.Info.IsReadOnly() {
				kind = 0
			}
			if t.state == isWaiting {
				waiting[kind]++
			} else {
				serving[kind]++
			}
		})
		l.mu.Unlock()
	}
	return waiting, serving
}
