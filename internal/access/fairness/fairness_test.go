package fairness

import (
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/anykind/anykind/internal/object/request"
)

// limitedTo returns a level with shares and, if it has some, queues.
func limitedTo(name string, shares, queues, hand, length int32) *flowcontrolv1.PriorityLevelConfiguration {
	l := &flowcontrolv1.LimitedPriorityLevelConfiguration{
		NominalConcurrencyShares: &shares, LendablePercent: ptr.To(int32(0)), BorrowingLimitPercent: ptr.To(int32(0)),
		LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
	}
	if queues > 0 {
		l.LimitResponse = flowcontrolv1.LimitResponse{
			Type:    flowcontrolv1.LimitResponseTypeQueue,
			Queuing: &flowcontrolv1.QueuingConfiguration{Queues: queues, HandSize: hand, QueueLengthLimit: length},
		}
	}
	return &flowcontrolv1.PriorityLevelConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       flowcontrolv1.PriorityLevelConfigurationSpec{Type: flowcontrolv1.PriorityLevelEnablementLimited, Limited: l},
	}
}

// of returns a schema for the requests of a user. They are one flow.
func of(user, level string) *flowcontrolv1.FlowSchema {
	every := []string{"*"}
	return &flowcontrolv1.FlowSchema{
		ObjectMeta: metav1.ObjectMeta{Name: "of-" + strings.ReplaceAll(user, "*", "everyone")},
		Spec: flowcontrolv1.FlowSchemaSpec{
			MatchingPrecedence:         int32(100 - len(user)),
			PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: level},
			DistinguisherMethod:        &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
			Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
				Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindUser, User: &flowcontrolv1.UserSubject{Name: user}}},
				ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: every, APIGroups: every, Resources: every, Namespaces: every, ClusterScope: true}},
			}},
		},
	}
}

func dispatcher(seats int, objects ...any) *Dispatcher {
	d := New(Options{
		Seats: seats, Timeout: time.Minute, Log: slog.New(slog.DiscardHandler),
		Stored: func(string, string) (int64, int64) { return -1, 0 },
	})
	o := Objects{Levels: map[string]*flowcontrolv1.PriorityLevelConfiguration{}, Schemas: map[string]*flowcontrolv1.FlowSchema{}}
	for _, one := range objects {
		switch one := one.(type) {
		case *flowcontrolv1.PriorityLevelConfiguration:
			o.Levels[one.Name] = one
		case *flowcontrolv1.FlowSchema:
			o.Schemas[one.Name] = one
		}
	}
	d.Configure(o)
	return d
}

// get admits a get of a user.
func get(d *Dispatcher, user string) (t *Turn, retryAfter int64) {
	r := httptest.NewRequest("GET", "/api/v1/namespaces/n/configmaps/x", nil)
	q := &request.Request{Info: request.Parse(r), User: &request.User{Name: user}}
	t = &Turn{}
	return t, d.Admit(http.Header{}, r, q, time.Now(), t)
}

// The requests of a user with many do not delay those of another one in the same level.
func TestPoliteUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(4, limitedTo("l", 10, 64, 4, 50), of("*", "l"))
		serve := func(user string) (waited time.Duration, retryAfter int64) {
			begun := time.Now()
			turn, after := get(d, user)
			waited = time.Since(begun)
			if after == 0 {
				time.Sleep(100 * time.Millisecond)
				turn.Release()
			}
			return waited, after
		}
		var greedy sync.WaitGroup
		var rejected atomic.Int32
		for range 300 {
			greedy.Go(func() {
				if _, after := serve("greedy"); after > 0 {
					rejected.Add(1)
				}
			})
		}
		synctest.Wait()
		for range 10 {
			// The greedy one waits for seconds; the polite one for two rounds of the greedy one's queues.
			if waited, after := serve("polite"); waited > 250*time.Millisecond || after > 0 {
				t.Errorf("the polite user waits for %v, and may try again after %d", waited, after)
			}
		}
		greedy.Wait()
		if rejected.Load() == 0 {
			t.Error("no request was rejected, although four queues of 50 are full")
		}
	})
}

// A request waits for a quarter of its time, and its level is named by metrics.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(1, limitedTo("l", 10, 1, 1, 50), of("*", "l"))
		first, _ := get(d, "a")
		begun := time.Now()
		if _, after := get(d, "a"); after != 1 || time.Since(begun) != 15*time.Second {
			t.Errorf("rejected after %v, to be tried again after %d", time.Since(begun), after)
		}
		first.Release()
		if turn, after := get(d, "a"); after != 0 {
			t.Error("rejected, although there is a seat")
		} else {
			turn.Release()
			turn.Release() // again
		}
		got := text(t, d)
		for _, want := range []string{
			`apiserver_flowcontrol_rejected_requests_total{flow_schema="of-everyone",priority_level="l",reason="time-out"} 1`,
			`apiserver_flowcontrol_dispatched_requests_total{flow_schema="of-everyone",priority_level="l"} 2`,
			`apiserver_flowcontrol_current_executing_requests{flow_schema="of-everyone",priority_level="l"} 0`,
			`apiserver_flowcontrol_current_inqueue_requests{flow_schema="of-everyone",priority_level="l"} 0`,
			`apiserver_flowcontrol_request_wait_duration_seconds_sum{execute="false",flow_schema="of-everyone",priority_level="l"} 15`,
			`apiserver_flowcontrol_request_execution_seconds_count{flow_schema="of-everyone",priority_level="l",type="regular"} 2`,
			`apiserver_flowcontrol_priority_level_seat_utilization_bucket{phase="executing",priority_level="l",le="0.99"} 0`,
			`apiserver_flowcontrol_priority_level_seat_utilization_sum{phase="executing",priority_level="l"} 1.5e+10`,
			`apiserver_flowcontrol_nominal_limit_seats{priority_level="l"} 1`,
		} {
			if !strings.Contains(got, want+"\n") {
				t.Errorf("there is no %s in\n%s", want, got)
			}
		}
	})
}

// text returns the metrics.
func text(t *testing.T, d *Dispatcher) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(d.Collectors()...)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// A deleted level serves its last requests and disappears.
func TestLevelIsDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(10, limitedTo("old", 10, 0, 0, 0), limitedTo("new", 10, 0, 0, 0), of("*", "old"))
		turn, _ := get(d, "a")
		d.Configure(Objects{
			Levels:  map[string]*flowcontrolv1.PriorityLevelConfiguration{"new": limitedTo("new", 10, 0, 0, 0)},
			Schemas: map[string]*flowcontrolv1.FlowSchema{"s": of("*", "new")},
		})
		names := func() (all string) {
			for _, s := range d.config.Load().shares {
				all += s.level.name + " "
			}
			return all
		}
		if got := names(); got != "new old " {
			t.Errorf("with a request of the old level, the levels are %s", got)
		}
		turn.Release()
		if got := names(); got != "new " {
			t.Errorf("without one, they are %s", got)
		}
	})
}

// A level that is created again while it has requests stays. The counters of deleted FlowSchemas do not.
func TestObjectsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dispatcher(10, limitedTo("l", 10, 0, 0, 0), limitedTo("m", 10, 0, 0, 0), of("*", "l"))
		before := d.of
		turn, _ := get(d, "a")
		d.Configure(Objects{
			Levels:  map[string]*flowcontrolv1.PriorityLevelConfiguration{"m": before.Levels["m"]},
			Schemas: map[string]*flowcontrolv1.FlowSchema{"s": of("*", "m")},
		})
		d.Configure(before)
		config := d.config.Load()
		turn.Release()
		if d.config.Load() != config {
			t.Error("the level that was created again is removed with its last request")
		}
		for i := range 100 {
			s := of("*", "l")
			s.Name = fmt.Sprint("s", i)
			d.Configure(Objects{Levels: before.Levels, Schemas: map[string]*flowcontrolv1.FlowSchema{"s": s}})
		}
		for _, s := range d.config.Load().shares {
			if n := len(s.level.flows); n > 1 {
				t.Errorf("%s has the counters of %d FlowSchemas", s.level.name, n)
			}
		}
	})
}

// An allocation distributes all seats, gives each level the same multiple of its target, and keeps the
// bounds.
func TestAllocate(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 6))
	for range 20_000 {
		var wishes []wish
		var lows, highs float64
		for range 1 + random.IntN(8) {
			low := float64(random.IntN(20))
			w := wish{target: low + float64(random.IntN(40))*random.Float64(), low: low, high: low + float64(random.IntN(60))}
			wishes = append(wishes, w)
			lows, highs = lows+w.low, highs+w.high
		}
		seats := lows + math.Floor(random.Float64()*(highs-lows))
		given, fair := allocate(seats, wishes)
		var sum float64
		for i, w := range wishes {
			sum += given[i]
			want := min(max(fair*max(w.target, smallestTarget), w.low), w.high)
			if math.Abs(given[i]-want) > 1e-6 || given[i] < w.low || given[i] > w.high {
				t.Fatalf("%v of %v gets %v, want %v", w, wishes, given[i], want)
			}
		}
		if math.Abs(sum-seats) > 1e-6 {
			t.Fatalf("%v seats of %v are given to %v", sum, seats, wishes)
		}
	}
}

// A hand has different cards of the deck, and all cards are dealt about equally often.
func TestDeal(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 6))
	for _, c := range [][2]int{{1, 1}, {5, 5}, {15, 15}, {16, 4}, {128, 6}} {
		deck, size := c[0], c[1]
		counts := make([]int, deck)
		const rounds = 20_000
		for range rounds {
			var seen [128]bool
			for _, card := range deal(make([]int, size), random.Uint64(), deck) {
				if seen[card] {
					t.Fatalf("card %d of %d is dealt twice", card, deck)
				}
				seen[card] = true
				counts[card]++
			}
		}
		for card, n := range counts {
			if mean := float64(rounds*size) / float64(deck); math.Abs(float64(n)-mean) > 6*math.Sqrt(mean) {
				t.Errorf("card %d of %d is dealt %d times, on the average %.0f", card, deck, n, mean)
			}
		}
	}
}

// Concurrent requests, changes of the objects, scrapes and tables leave no seat in use.
func TestConcurrent(t *testing.T) {
	d := dispatcher(20, limitedTo("a", 10, 16, 4, 20), limitedTo("b", 10, 0, 0, 0), of("*", "a"), of("bob", "b"))
	objects := d.of
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for range 500 {
				turn, after := get(d, []string{"alice", "bob"}[i%2])
				if after == 0 {
					turn.Release()
				}
				turn.End()
			}
		})
	}
	done := make(chan struct{})
	var rest sync.WaitGroup
	rest.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if i%2 == 0 {
				d.Configure(Objects{
					Levels:  map[string]*flowcontrolv1.PriorityLevelConfiguration{"a": objects.Levels["a"]},
					Schemas: map[string]*flowcontrolv1.FlowSchema{"s": of("*", "a")},
				})
			} else {
				d.Configure(objects)
			}
			d.adapt()
			_ = text(t, d)
			for _, page := range d.Pages() {
				page(httptest.NewRecorder(), httptest.NewRequest("GET", "/?includeRequestDetails=1", nil))
			}
		}
	})
	clients.Wait()
	close(done)
	rest.Wait()
	if waiting, serving := d.InFlight(); waiting != [2]int{} || serving != [2]int{} {
		t.Errorf("%d wait and %d are served", waiting, serving)
	}
	for _, s := range d.config.Load().shares {
		if l := s.level; l.seats != 0 || l.active != 0 || l.queueSeats != 0 {
			t.Errorf("%s has %d seats in use, %d active queues, %d seats of queues", l.name, l.seats, l.active, l.queueSeats)
		}
	}
}

// A request that need not wait allocates nothing.
func TestAllocations(t *testing.T) {
	d := dispatcher(20, limitedTo("a", 10, 64, 6, 50), of("*", "a"))
	r := httptest.NewRequest("GET", "/api/v1/namespaces/n/configmaps/x", nil)
	q := &request.Request{Info: request.Parse(r), User: &request.User{Name: "alice"}}
	h := http.Header{}
	turn := &Turn{}
	if n := testing.AllocsPerRun(100, func() {
		*turn = Turn{}
		d.Admit(h, r, q, time.Now(), turn)
		turn.Release()
		turn.End()
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdmit(b *testing.B) {
	d := dispatcher(600, limitedTo("a", 10, 64, 6, 50), of("*", "a"))
	r := httptest.NewRequest("GET", "/api/v1/namespaces/n/configmaps/x", nil)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		h := http.Header{}
		q := &request.Request{Info: request.Parse(r), User: &request.User{Name: "alice"}}
		for p.Next() {
			var turn Turn
			d.Admit(h, r, q, time.Now(), &turn)
			turn.Release()
		}
	})
}

// A write uses seats for its watchers after its answer, at most those of its level, and then for longer.
func TestSeatsAfterTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLevel("l", false, nil)
		l.configure(queuing{queues: 1, hand: 1, length: 10}, 2, 2, nil)
		turn := &Turn{request: &request.Request{}, flow: l.flow("s"), work: Work{Initial: 1, Final: 10, After: 5 * time.Millisecond}}
		if reason := l.enter(t.Context(), turn, 0, time.Now().Add(time.Second)); reason != "" {
			t.Fatal(reason)
		}
		if turn.work.Final != 2 || turn.work.After != 25*time.Millisecond {
			t.Errorf("ten seats for 5 ms are %d for %v with a limit of two", turn.work.Final, turn.work.After)
		}
		turn.Release()
		l.mu.Lock()
		if l.seats != 2 || l.waitSeats != 0 || l.serving != 0 {
			t.Errorf("after the answer %d seats are used, %d are waited for, and %d requests are served", l.seats, l.waitSeats, l.serving)
		}
		l.mu.Unlock()
		time.Sleep(25 * time.Millisecond)
		synctest.Wait()
		if l.seats != 0 {
			t.Errorf("at last %d seats are used", l.seats)
		}
	})
}

// A queue that is one too many is removed once, although two requests free seats in it.
func TestQueueIsRemovedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLevel("l", false, nil)
		l.configure(queuing{queues: 3, hand: 1, length: 10}, 9, 9, nil)
		for i := range 2 {
			turn := &Turn{request: &request.Request{}, flow: l.flow("s"), work: Work{Initial: 1, Final: 1, After: time.Duration(i+1) * time.Millisecond}}
			if reason := l.enter(t.Context(), turn, 1, time.Now().Add(time.Second)); reason != "" { // in the second queue
				t.Fatal(reason)
			}
			turn.Release()
		}
		l.configure(queuing{queues: 1, hand: 1, length: 10}, 9, 9, nil)
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if len(l.queues) != 2 || l.queues[1].index != 1 || l.queueSeats != 0 || l.seats != 0 {
			t.Errorf("%d queues are left, the last at %d, with %d of %d seats", len(l.queues), l.queues[1].index, l.queueSeats, l.seats)
		}
	})
}
