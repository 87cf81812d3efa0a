package fairness

import (
	"math"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
)

// Work is the estimated work of a request: the seats that it uses until it is answered, and those for
// some time after.
type Work struct {
	Initial, Final int
	After          time.Duration
	watchers       int // of the object of a write
	writes         bool
}

// seats returns the seats that the request needs: each phase can use them.
func (w *Work) seats() int { return max(w.Initial, w.Final) }

const (
	// mostListSeats and mostWriteSeats limit the seats of a request at every level.
	mostListSeats  = 100
	mostWriteSeats = 10

	bytesPerSeat    = 100_000
	watchersPerSeat = 10
	// eventTime is the time that a seat needs for its watchers after a write.
	eventTime = 5 * time.Millisecond

	// streamed is the memory of a list from the cache. The list is encoded object by object.
	streamed = 1_000_000
	// largest is the size of an object of unknown size.
	largest = 1_500_000
)

// work estimates the work of a request at a level where a request may use most seats; 0 is no limit.
func (d *Dispatcher) work(q *request.Request, r *http.Request, most int) Work {
	switch q.Info.Verb {
	case "list", "watch":
		if q.Info.IsResource {
			return Work{Initial: min(max(d.listSeats(&q.Info, r), 1), limited(most, mostListSeats))}
		}
	case "create", "update", "patch", "delete":
		if q.Info.IsResource && (q.Info.Resource != "serviceaccounts" || q.Info.Subresource != "token") {
			return d.writing(&q.Info, limited(most, mostWriteSeats))
		}
	}
	return Work{Initial: 1}
}

func limited(most, by int) int {
	if most == 0 {
		return by
	}
	return min(most, by)
}

// listSeats returns the seats of a list, or of a watch that begins with the present objects, by the
// memory that it needs at a time.
func (d *Dispatcher) listSeats(i *request.Info, r *http.Request) int {
	query := r.URL.Query()
	var o metav1.ListOptions
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &o, nil); err != nil {
		return mostListSeats
	}
	watch := i.Verb == "watch"
	if watch && !d.options.Gates.On(gate.WatchList) {
		return 1
	}
	if watch && !(o.SendInitialEvents != nil && *o.SendInitialEvents) && o.ResourceVersion != "" && o.ResourceVersion != "0" {
		return 1
	}
	count, bytes := d.options.Stored(i.Group, i.Resource)
	if count <= 0 {
		return 1
	}
	size := int64(largest)
	if bytes > 0 {
		size = max(bytes/count, 1)
	}
	part := count
	if o.Limit > 0 {
		part = min(o.Limit, count)
	}
	cached := watch || fromCache(&o)
	switch {
	case i.Name != "":
		part = 1
	case !cached && (o.FieldSelector != "" || o.LabelSelector != ""):
		part = max(part, count/2)
	}
	memory := part * size
	if cached {
		memory = min(memory, streamed)
	}
	return int(math.Ceil(float64(memory) / bytesPerSeat))
}

// fromCache reports whether Kubernetes presumes that a list comes from its cache.
func fromCache(o *metav1.ListOptions) bool {
	switch o.ResourceVersionMatch {
	case metav1.ResourceVersionMatchNotOlderThan:
		return true
	case "":
		exact := o.Limit > 0 && o.ResourceVersion != "" && o.ResourceVersion != "0"
		return o.Continue == "" && !exact
	default:
		return false
	}
}

// writing returns the work of a write: watchers are sent its event after the answer.
func (d *Dispatcher) writing(i *request.Info, most int) Work {
	n := d.watches.interested(i)
	w := Work{Initial: 1, watchers: n, writes: true}
	if n >= watchersPerSeat {
		seats := int(math.Ceil(float64(n) / watchersPerSeat))
		w.Final = min(seats, most)
		w.After = effortOf(float64(seats), eventTime).per(w.Final)
	}
	return w
}

// watches counts watches by what they watch.
type watches struct {
	mu     sync.Mutex
	counts map[watched]int
}

// watched are the objects of a watch.
type watched struct{ group, resource, namespace, name string }

// interested returns the number of watches that may get the event of a write. The name of a new object
// is not known.
func (w *watches) interested(i *request.Info) (n int) {
	k := watched{group: i.Group, resource: i.Resource}
	w.mu.Lock()
	defer w.mu.Unlock()
	n = w.counts[k]
	if k.namespace = i.Namespace; k.namespace != "" {
		n += w.counts[k]
	}
	if k.name = i.Name; k.name != "" {
		n += w.counts[k]
	}
	return n
}

// begin counts a watch until end is called.
func (w *watches) begin(i *request.Info, r *http.Request) (end func()) {
	if i.Resource == "pods" && ofOneNode(r) {
		return nil // an event concerns few of them
	}
	k := watched{i.Group, i.Resource, i.Namespace, i.Name}
	w.add(k, 1)
	return func() { w.add(k, -1) }
}

func (w *watches) add(k watched, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts[k] += n; w.counts[k] == 0 {
		delete(w.counts, k)
	}
}

// ofOneNode reports whether a watch selects the Pods of a node.
func ofOneNode(r *http.Request) bool {
	s, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return false
	}
	node, exact := s.RequiresExactMatch("spec.nodeName")
	return exact && node != ""
}
