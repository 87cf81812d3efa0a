package etcd

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anykind/anykind/internal/store/etcdkv"
	"github.com/anykind/anykind/internal/store/kv"
)

// Each call of etcd counts by its operation and the resource of its key. A conflict is no error; a
// call that etcd does not answer is one.
func TestEtcdMetrics(t *testing.T) {
	url := Start(t)
	s, err := etcdkv.Open(etcdkv.Options{Endpoints: []string{url}, Root: "/registry/", Prefix: "/registry/",
		Resource: func(key string) (string, string) { return "example.com", strings.Split(key, "/")[2] }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := t.Context()
	const key = "/registry/widgets/a"
	at := must[int64](t)(s.Commit(ctx, kv.Write{Key: key, Value: []byte("1")}))
	if _, err := s.Commit(ctx, kv.Write{Key: key, Value: []byte("1")}); err == nil {
		t.Fatal("an object is created twice")
	}
	at = must[int64](t)(s.Commit(ctx, kv.Write{Key: key, Value: []byte("2"), Expect: at}))
	must[kv.Record](t)(s.Get(ctx, key, kv.Latest))
	must[kv.Page](t)(s.List(ctx, kv.Range{Prefix: "/registry/widgets/"}))
	must[int64](t)(s.Commit(ctx, kv.Write{Key: key, Expect: at}))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Get(ended, key, kv.Latest); err == nil {
		t.Fatal("a call with an ended context succeeds")
	}

	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]float64{
		"etcd_requests_total":           {"create": 2, "update": 1, "delete": 1, "get": 2, "list": 1},
		"etcd_request_errors_total":     {"get": 1},
		"etcd_request_duration_seconds": {"create": 2, "update": 1, "delete": 1, "get": 2, "list": 1},
	}
	for _, f := range families {
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["group"] != "example.com" || labels["resource"] != "widgets" {
				t.Errorf("%s has %v", f.GetName(), labels)
			}
			n := m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if n != want[f.GetName()][labels["operation"]] {
				t.Errorf("%s of %s is %v, want %v", f.GetName(), labels["operation"], n, want[f.GetName()][labels["operation"]])
			}
		}
		delete(want, f.GetName())
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
