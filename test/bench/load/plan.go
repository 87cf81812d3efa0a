package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Plan is a load. Each client has one connection, and sends one request after the other. The nth
// request is the same for every server.
type Plan struct {
	Clients int
	Make    func(n int, r *Request) // makes the nth request; the Request is zero before
	Warmup  int                     // number of first requests that are not counted
	Begin   func() error            // called before the first counted request; may be nil
	Count   int                     // number of counted requests
	For     time.Duration           // duration, if Count is 0
	Pause   time.Duration           // of a client between two requests
}

// A Result is the outcome of a plan.
type Result struct {
	Done       int // successful requests
	Refused    int // those of Done that got the status Refusable
	Errors     int // failed requests
	FirstError string
	Elapsed    time.Duration
	Latencies  []time.Duration // of successful requests, shortest first
	Bytes      int64           // in the bodies of responses
}

// Rate is the number of successful requests a second.
func (r *Result) Rate() float64 { return float64(r.Done) / r.Elapsed.Seconds() }

// Percentile returns the latency that p percent of the requests do not exceed, by the nearest-rank
// method.
func (r *Result) Percentile(p float64) time.Duration { return percentile(r.Latencies, p) }

func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(p / 100 * float64(len(sorted)))
	if float64(rank) < p/100*float64(len(sorted)) {
		rank++ // the nearest rank is rounded up
	}
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Run opens the connections, spread evenly over the targets, warms up and measures. Failed requests
// are counted in the result; the error means that there is no result.
func (p Plan) Run(ctx context.Context, targets ...Target) (*Result, error) {
	if p.Count <= 0 && p.For <= 0 {
		return nil, errors.New("a plan needs to end: it has neither a number of requests nor a time")
	}
	conns := make([]*Conn, p.Clients)
	for i := range conns {
		c, err := Dial(ctx, targets[i%len(targets)])
		if err != nil {
			return nil, err
		}
		defer func() {
			if conns[i] != nil { // a connection that broke could not be replaced
				conns[i].Close()
			}
		}()
		conns[i] = c
	}
	if p.Warmup > 0 {
		warm := p.part(ctx, targets, conns, 0, p.Warmup, 0)
		if warm.Done == 0 {
			return nil, fmt.Errorf("nothing was answered while warming up: %s", warm.FirstError)
		}
	}
	if p.Begin != nil {
		if err := p.Begin(); err != nil {
			return nil, err
		}
	}
	return p.part(ctx, targets, conns, p.Warmup, p.Count, p.For), ctx.Err()
}

// part sends requests from number first on. It replaces a broken connection.
func (p Plan) part(ctx context.Context, targets []Target, conns []*Conn, first, count int, long time.Duration) *Result {
	var next atomic.Int64
	next.Store(int64(first))
	parts := make([]Result, len(conns))
	var all sync.WaitGroup
	began := time.Now()
	for i := range conns {
		all.Go(func() {
			mine := &parts[i]
			for pause := time.Duration(0); ctx.Err() == nil && (long == 0 || time.Since(began) < long); pause = p.Pause {
				if pause > 0 {
					select {
					case <-ctx.Done():
					case <-time.After(pause):
					}
				}
				n := int(next.Add(1)) - 1
				if count > 0 && n >= first+count {
					return
				}
				var r Request
				p.Make(n, &r)
				if conns[i] = mine.one(ctx, targets[i%len(targets)], conns[i], &r); conns[i] == nil {
					return
				}
			}
		})
	}
	all.Wait()
	total := Result{Elapsed: time.Since(began)}
	for i := range parts {
		total.add(&parts[i])
	}
	slices.Sort(total.Latencies)
	return &total
}

// one sends one request, counts its outcome, and returns the connection for the next one.
func (r *Result) one(ctx context.Context, t Target, c *Conn, q *Request) *Conn {
	began := time.Now()
	got, err := c.Do(q)
	took := time.Since(began)
	if err == nil {
		err = q.check(&got)
		r.Bytes += int64(got.Size)
	} else if c.Close(); true {
		fresh, again := Dial(ctx, t)
		if again != nil {
			r.fail(fmt.Errorf("%w, and then %w", err, again))
			return nil
		}
		c = fresh
	}
	if err != nil {
		r.fail(err)
		return c
	}
	r.Done++
	if q.Refusable != 0 && got.Status == q.Refusable {
		r.Refused++
	}
	r.Latencies = append(r.Latencies, took)
	return c
}

func (r *Result) fail(err error) {
	r.Errors++
	if r.FirstError == "" {
		r.FirstError = err.Error()
	}
}

func (r *Result) add(part *Result) {
	r.Done += part.Done
	r.Refused += part.Refused
	r.Errors += part.Errors
	r.Bytes += part.Bytes
	r.Latencies = append(r.Latencies, part.Latencies...)
	if r.FirstError == "" {
		r.FirstError = part.FirstError
	}
}

// check returns the fault of a response, or nil.
func (q *Request) check(got *Response) error {
	switch {
	case got.Status >= 200 && got.Status < 300 && got.Size < q.Least:
		return fmt.Errorf("%s %s: %d bytes, not %d or more", q.Method, q.Path, got.Size, q.Least)
	case got.Status >= 200 && got.Status < 300:
		return nil
	case q.Refusable != 0 && got.Status == q.Refusable:
		return nil
	}
	return fmt.Errorf("%s %s: %d %.300s", q.Method, q.Path, got.Status, got.Start)
}
