package fairness

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"
)

// Pages returns the tables of the present requests by the names of their pages: of levels, of queues
// and of requests.
func (d *Dispatcher) Pages() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"dump_priority_levels": d.page(d.levelTable),
		"dump_queues":          d.page(d.queueTable),
		"dump_requests":        d.page(d.requestTable),
	}
}

func (d *Dispatcher) page(write func(row func(...any), r *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var text strings.Builder
		table := tabwriter.NewWriter(&text, 8, 0, 1, ' ', 0)
		write(func(cells ...any) {
			for i, c := range cells {
				if i > 0 {
					fmt.Fprint(table, ",\t")
				}
				fmt.Fprint(table, c)
			}
			fmt.Fprintln(table)
		}, r)
		if err := table.Flush(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, text.String()) // the client may be gone
	}
}

func (d *Dispatcher) levelTable(row func(...any), _ *http.Request) {
	row("PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests",
		"DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests")
	for _, s := range d.config.Load().shares { // Kubernetes does not count timeouts either: they are cancellations
		l := s.level
		l.lock()
		active := 0
		for _, q := range l.queues {
			if q.waiting.n > 0 {
				active++
			}
		}
		row(l.name, active, l.waiting == 0 && l.serving == 0, s.leaving, l.waiting, l.serving, l.dispatched, l.rejected, 0, l.cancelled)
		l.mu.Unlock()
	}
}

func (d *Dispatcher) queueTable(row func(...any), _ *http.Request) {
	row("PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR",
		"InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum")
	for _, s := range d.config.Load().shares {
		l := s.level
		l.lock()
		for i, q := range l.queues {
			row(l.name, i, q.waiting.n, q.serving.n, q.seats, q.next, q.waits.initial, q.waits.most, q.waits.work)
		}
		l.mu.Unlock()
	}
}

// String returns the work in seat-seconds.
func (e effort) String() string {
	return fmt.Sprintf("%d.%08dss", e/effortsPerSecond, e%effortsPerSecond)
}

func (d *Dispatcher) requestTable(row func(...any), r *http.Request) {
	details := r.URL.Query().Get("includeRequestDetails") != ""
	head := []any{
		"PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime",
		"InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime",
	}
	if details {
		head = append(head, "UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource")
	}
	row(head...)
	for _, s := range d.config.Load().shares {
		l := s.level
		l.lock()
		queue, place := -1, 0
		l.each(func(of int, t *Turn) {
			at := -1 // it does not wait
			if t.state == isWaiting {
				if of != queue {
					queue, place = of, 0
				}
				at = place
				place++
			}
			cells := []any{
				l.name, t.flow.schema, of, at, t.distinguisher, t.arrived.UTC().Format(time.RFC3339Nano),
				t.work.Initial, t.work.Final, t.work.After, t.started.UTC().Format(time.RFC3339Nano),
			}
			if details {
				i := &t.request.Info
				version := i.Version
				if i.Group != "" {
					version = i.Group + "/" + version
				}
				cells = append(cells, t.request.User.Name, i.Verb, i.Path, i.Namespace, i.Name, version, i.Resource, i.Subresource)
			}
			row(cells...)
		})
		l.mu.Unlock()
	}
}
