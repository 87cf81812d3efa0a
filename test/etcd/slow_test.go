package etcd

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/etcdkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
)

// A consumer reads one event and then stops, while other clients write far more than the buffer of a
// watch. The store reads no more than the buffer from etcd, and the consumer misses no event when it
// resumes.
func TestASlowConsumerHoldsNoMoreThanItMay(t *testing.T) {
	const (
		values = 60
		size   = 1 << 20
		held   = 16 << 20 // the buffer of a watch, data in transit, and a reserve
	)
	url := Start(t)
	way := NewProxy(t, strings.TrimPrefix(url, "http://"))
	open := func(url string) *etcdkv.Store {
		s, err := etcdkv.Open(etcdkv.Options{Endpoints: []string{url}, Root: "/registry/", Prefix: "/registry/"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	writer, reader := open(url), open("http://"+way.Address())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	after := must[int64](t)(writer.Revision(ctx))
	next, stop := iter.Pull2(kvtest.CheckWatch(t.Errorf, "/registry/", after, reader.Watch(ctx, "/registry/", after)))
	defer stop()
	if _, err, _ := next(); err != nil {
		t.Fatal(err)
	}
	var last int64
	for i := range values {
		last = must[int64](t)(writer.Commit(ctx, kv.Write{Key: fmt.Sprintf("/registry/%02d", i), Value: bytes.Repeat([]byte{'x'}, size)}))
	}
	// Other watches get all events, and the traffic of the slow one stops.
	seen := 0
	for batch, err := range writer.Watch(ctx, "/registry/", after) {
		if err != nil {
			t.Fatal(err)
		}
		if seen += len(batch.Events); batch.Revision >= last {
			break
		}
	}
	if seen != values {
		t.Errorf("a quick consumer saw %d events of %d", seen, values)
	}
	if came := way.drained(ctx); came > held {
		t.Errorf("%d MB came for a consumer that takes nothing", came>>20)
	}
	for seen = 0; ; {
		batch, err, _ := next()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			if want := fmt.Sprintf("/registry/%02d", seen); e.Key != want || len(e.Value) != size {
				t.Fatalf("event %d is of %s, with %d bytes", seen, e.Key, len(e.Value))
			}
			seen++
		}
		if batch.Revision >= last {
			break
		}
	}
	if seen != values {
		t.Errorf("the slow consumer saw %d events of %d", seen, values)
	}
}

// etcd splits large responses, also within the events of one revision. The store still delivers them
// in one batch.
func TestTheEventsOfOneRevisionComeTogether(t *testing.T) {
	const keys = 100
	m := StartMember(t)
	s, err := etcdkv.Open(etcdkv.Options{Endpoints: []string{m.Client}, Root: "/registry/", Prefix: "/registry/"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// etcd also sends the previous values, so the change exceeds one response of etcd.
	const times = 4
	for i := range times {
		m.put(t, 0, keys, "/registry/%d", strings.Repeat(fmt.Sprint(i), 10<<10))
	}
	newest := must[int64](t)(s.Revision(t.Context()))
	seen := 0
	for batch, err := range kvtest.CheckWatch(t.Errorf, "/registry/", 1, s.Watch(t.Context(), "/registry/", 1)) {
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Events)%keys != 0 {
			t.Errorf("a batch up to %d has %d events, and %d have the same revision", batch.Revision, len(batch.Events), keys)
		}
		if seen += len(batch.Events); batch.Revision >= newest {
			break
		}
	}
	if seen != times*keys {
		t.Errorf("%d events, want %d", seen, times*keys)
	}
}
