package allocation

import (
	"context"
	"math/bits"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/histogram"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/store/kv"
)

// metrics count allocations, under the metric names of Kubernetes.
type metrics struct {
	addresses, addressErrors, ports, portErrors *prometheus.CounterVec
	durations                                   *prometheus.HistogramVec
}

// Label values: allocated by the server, or requested by the client.
const (
	dynamic = "dynamic"
	static  = "static"
)

const (
	addressMetric = "kube_apiserver_clusterip_allocator_"
	portMetric    = "kube_apiserver_nodeport_allocator_"
)

func newMetrics(gates *gate.Set) metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return metrics{
		addresses:     counter(addressMetric+"allocation_total", "Allocated cluster IPs, by CIDR and scope.", "cidr", "scope"),
		addressErrors: counter(addressMetric+"allocation_errors_total", "Failed allocations of cluster IPs, by CIDR and scope.", "cidr", "scope"),
		ports:         counter(portMetric+"allocation_total", "Allocated node ports, by scope.", "scope"),
		portErrors:    counter(portMetric+"allocation_errors_total", "Failed allocations of node ports, by scope.", "scope"),
		durations: histogram.NewVec(gates, prometheus.HistogramOpts{
			Name: addressMetric + "allocation_duration_seconds", Help: "Duration of the allocation of a cluster IP in seconds.", Buckets: prometheus.DefBuckets,
		}, []string{"cidr"}),
	}
}

// address counts the allocation of an address of a range, which began at begun.
func (m *metrics) address(of netip.Prefix, scope string, begun time.Time, err error) {
	if !of.IsValid() {
		return
	}
	if err != nil {
		m.addressErrors.WithLabelValues(of.String(), scope).Inc()
		return
	}
	m.addresses.WithLabelValues(of.String(), scope).Inc()
	m.durations.WithLabelValues(of.String()).Observe(time.Since(begun).Seconds())
}

// port counts the allocation of a port.
func (m *metrics) port(scope string, err error) {
	if err != nil {
		m.portErrors.WithLabelValues(scope).Inc()
		return
	}
	m.ports.WithLabelValues(scope).Inc()
}

// Collectors returns the metrics of the Allocator.
func (a *Allocator) Collectors() []prometheus.Collector {
	m := &a.metrics
	return []prometheus.Collector{m.addresses, m.addressErrors, m.ports, m.portErrors, m.durations, &gauges{a}}
}

// gauges are the metrics of allocated and free addresses and ports. They are computed at each
// scrape.
type gauges struct{ a *Allocator }

// gaugeTimeout limits the time of that computation.
const gaugeTimeout = 5 * time.Second

var (
	cidrLabel          = []string{"cidr"}
	addressesTaken     = prometheus.NewDesc(addressMetric+"allocated_ips", "Cluster IPs in use, by CIDR.", cidrLabel, nil)
	addressesAvailable = prometheus.NewDesc(addressMetric+"available_ips", "Available cluster IPs, by CIDR.", cidrLabel, nil)
	portsTaken         = prometheus.NewDesc(portMetric+"allocated_ports", "Node ports in use.", nil, nil)
	portsAvailable     = prometheus.NewDesc(portMetric+"available_ports", "Available node ports.", nil, nil)
)

// Describe implements prometheus.Collector.
func (*gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{addressesTaken, addressesAvailable, portsTaken, portsAvailable} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It omits gauges that it cannot compute.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), gaugeTimeout)
	defer cancel()
	show := func(taken, available *prometheus.Desc, n, all float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(taken, prometheus.GaugeValue, n, labels...)
		to <- prometheus.MustNewConstMetric(available, prometheus.GaugeValue, all-n, labels...)
	}
	if ranges, taken, err := g.a.count(ctx); err == nil {
		for i, p := range ranges {
			if b, ok := blockOf(p); ok {
				show(addressesTaken, addressesAvailable, float64(taken[i]), float64(b.size), p.String())
			}
		}
	}
	if s, err := g.a.recorded(ctx); err == nil {
		n := 0
		for _, word := range s.bits.Bits() {
			n += bits.OnesCount(uint(word))
		}
		show(portsTaken, portsAvailable, float64(n), float64(s.of.Size))
	}
}

// count counts the allocated addresses of each range.
func (a *Allocator) count(ctx context.Context) (ranges []netip.Prefix, taken []int, err error) {
	if ranges, err = a.Ranges(ctx, false); err != nil {
		return nil, nil, err
	}
	order.Stable(ranges, netip.Prefix.Compare)
	ranges = slices.Compact(ranges)
	snapshot, err := a.o.Cache.Resource(a.o.Addresses.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, nil, err
	}
	taken = make([]int, len(ranges))
	for o := range snapshot.Scan(a.o.Addresses.StoragePrefix, "") {
		_, name := a.o.Addresses.Split(o.Key)
		ip, err := netip.ParseAddr(name)
		if err != nil {
			continue
		}
		for i, p := range ranges {
			if Contains(p, ip) {
				taken[i]++
			}
		}
	}
	return ranges, taken, nil
}
