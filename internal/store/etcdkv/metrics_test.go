package etcdkv

import (
	"fmt"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/anykind/anykind/internal/store/kv"
)

func TestOperationOfWrite(t *testing.T) {
	for _, test := range []struct {
		w    kv.Write
		want string
	}{
		{kv.Write{Value: []byte("a"), Expect: kv.Absent}, opCreate},
		{kv.Write{Value: []byte("a"), Expect: 7}, opUpdate},
		{kv.Write{Expect: 7}, opDelete},
	} {
		if got := operation(&test.w); got != test.want {
			t.Errorf("%+v is a %s, not a %s", test.w, got, test.want)
		}
	}
}

// Definitions come and go without end: the series stay bounded.
func TestSeriesAreBounded(t *testing.T) {
	m := newMetrics(func(key string) (string, string) { return "example.com", key }, nil)
	for i := range 2*maxSeries + 10 {
		m.called(opGet, fmt.Sprint(i), time.Now(), nil)
	}
	m.called(opGet, "last", time.Now(), kv.ErrClosed)
	if len(m.series) > maxSeries {
		t.Errorf("%d series", len(m.series))
	}
	var requests, errors dto.Metric
	s := m.of(callKey{opGet, "example.com", "last"})
	_, _ = s.requests.Write(&requests), s.errors.Write(&errors)
	if requests.Counter.GetValue() != 1 || errors.Counter.GetValue() != 1 {
		t.Errorf("%v calls, %v errors; want 1 of each", requests.Counter.GetValue(), errors.Counter.GetValue())
	}
}
