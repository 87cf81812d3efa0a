package controller

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// A queue with one worker: a task of 3 s fails once and succeeds at the retry, a second one waits for
// it.
func TestQueueMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		m := NewMetrics()
		q := newQueue(1, slog.New(slog.DiscardHandler))
		m.follow("namespace-controller", q)
		failed := false
		q.do = func(_ context.Context, task Task) error {
			time.Sleep(3 * time.Second)
			if task.Key == "a" && !failed {
				failed = true
				return errors.New("not yet")
			}
			return nil
		}
		expect := func(moment string, want map[string]float64) {
			t.Helper()
			got := gathered(t, m)
			for name, value := range want {
				if got[name] != value {
					t.Errorf("%s: %s is %v, not %v", moment, name, got[name], value)
				}
			}
		}
		expect("before the start", map[string]float64{"workqueue_depth": 0, "workqueue_adds_total": 0})
		q.start(ctx)
		q.Add(Task{Key: "a"}, Task{Key: "b"})
		time.Sleep(2 * time.Second)
		expect("while a runs", map[string]float64{
			"workqueue_depth": 1, "workqueue_adds_total": 2,
			"workqueue_unfinished_work_seconds": 2, "workqueue_longest_running_processor_seconds": 2,
		})
		time.Sleep(time.Minute)
		expect("after both", map[string]float64{
			"workqueue_depth": 0, "workqueue_adds_total": 3, "workqueue_retries_total": 1,
			"workqueue_unfinished_work_seconds": 0, "workqueue_longest_running_processor_seconds": 0,
			"workqueue_work_duration_seconds": 9, "workqueue_queue_duration_seconds": 3 + 3 - ShortestRetry.Seconds(),
		})
		q.hold()
		q.Add(Task{Key: "c"})
		expect("with a pending task", map[string]float64{"workqueue_depth": 1})
		cancel()
		q.wait()
		expect("after the end", map[string]float64{"workqueue_depth": 0, "workqueue_adds_total": 4})
	})
}

// gathered returns the value of each metric of the only queue; of a histogram, its sum.
func gathered(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if len(f.Metric) != 1 || !strings.Contains(f.Metric[0].String(), "namespace-controller") {
			t.Fatalf("want one series of the controller, got %v", f)
		}
		one := f.Metric[0]
		switch f.GetType() {
		case dto.MetricType_COUNTER:
			values[f.GetName()] = one.Counter.GetValue()
		case dto.MetricType_GAUGE:
			values[f.GetName()] = one.Gauge.GetValue()
		default:
			values[f.GetName()] = one.Histogram.GetSampleSum()
		}
	}
	return values
}
