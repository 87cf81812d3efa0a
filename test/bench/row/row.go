// Package row defines the measurements: the rows of the report and their values. A Scenario starts one
// empty server, loads it, and yields the values of several rows. It treats every server alike and
// cannot tell them apart.
package row

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// A Row is a line of the report.
type Row struct {
	ID     string
	Title  string
	Unit   string
	Higher bool    // a higher value is better
	Aim    float64 // the aim in DESIGN, 0 for none
	Stood  float64 // the reference's value when the aim was set
}

// A Scenario is a run of one server from its start to its end.
type Scenario struct {
	Name  string
	Title string
	About string // remarks, "" for none
	Pairs int    // number of runs of each server
	Alone bool   // only anykind runs; About has the reason
	Sides func(server.Programs) server.Sides
	Rows  []Row // the rows that it yields
	Curve *Curve

	prefix string // prefix of the IDs of the rows
	run    func(context.Context, *Run) error
}

// A Curve is a series of values by the amount of something.
type Curve struct {
	Along string // the amount that grows
	Shape string // reason for the shape
	Rows  []Row  // one plot each
}

// A Value is the value of one run of a server for a row.
type Value struct {
	Value      float64
	Errors     int    `json:",omitempty"` // failed requests of the measurement
	FirstError string `json:",omitempty"`
	Detail     string `json:",omitempty"`
}

// A Point is a Value of a curve.
type Point struct {
	At float64
	Value
}

// A Run is one run of a scenario.
type Run struct {
	Values map[string]Value   // by the ID of the row
	Points map[string][]Point // likewise

	kind     server.Kind
	dir      string
	prefix   string
	size     Size
	server   *server.Server
	revision int // number of the first of the last patches
	log      func(format string, args ...any)
}

// Of runs the scenario on a server in a temporary folder. On an error, the Run has the values up to
// it.
func (s *Scenario) Of(ctx context.Context, k server.Kind, parent string, size Size, log func(string, ...any)) (*Run, error) {
	dir, err := os.MkdirTemp(parent, s.Name+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := &Run{
		Values: map[string]Value{}, Points: map[string][]Point{},
		kind: k, dir: filepath.Join(dir, "server"), prefix: s.prefix, size: size, log: log,
	}
	err = r.start(ctx, server.Options{})
	if err == nil {
		err = s.run(ctx, r)
	}
	if r.server != nil {
		if stopped := r.server.Stop(); err == nil {
			err = stopped
		}
	}
	return r, err
}

func (r *Run) start(ctx context.Context, o server.Options) (err error) {
	r.server, err = server.Start(ctx, r.kind, r.dir, o)
	return err
}

// restart stops the server and starts it on the same data.
func (r *Run) restart(ctx context.Context, o server.Options) error {
	err := r.server.Stop()
	r.server = nil
	if err != nil {
		return err
	}
	return r.start(ctx, o)
}

// put records a value.
func (r *Run) put(id string, value float64, detail string) {
	r.Values[r.prefix+id] = Value{Value: value, Detail: detail}
	r.log("  %-28s %12.1f  %s", id, value, detail)
}

// putResult records a value of a load, with the load's errors.
func (r *Run) putResult(id string, value float64, of *load.Result) {
	r.putDetailed(id, value, of, percentiles(of))
}

func (r *Run) putDetailed(id string, value float64, of *load.Result, detail string) {
	r.Values[r.prefix+id] = Value{Value: value, Detail: detail, Errors: of.Errors, FirstError: of.FirstError}
	r.log("  %-28s %12.1f  %s, %d errors %s", id, value, detail, of.Errors, of.FirstError)
}

func percentiles(of *load.Result) string {
	return fmt.Sprintf("p50 %s, p99 %s", short(of.Percentile(50)), short(of.Percentile(99)))
}

// point records a value of a curve.
func (r *Run) point(id string, at int, v Value) {
	r.Points[id] = append(r.Points[id], Point{float64(at), v})
	r.log("  %-28s %8d %12.1f  %s %d errors %s", id, at, v.Value, v.Detail, v.Errors, v.FirstError)
}

func short(d time.Duration) string {
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func megabytes(n int64) float64 { return float64(n) / 1e6 }

// memory records the resident memory.
func (r *Run) memory(id string) error {
	u, err := r.server.Usage()
	if err != nil {
		return err
	}
	r.put(id, megabytes(u.Resident), parts(u))
	return nil
}

// memoryAt records the resident memory at a point of a curve.
func (r *Run) memoryAt(id string, at int) error {
	u, err := r.server.Usage()
	if err != nil {
		return err
	}
	r.point(id, at, Value{Value: megabytes(u.Resident), Detail: parts(u)})
	return nil
}

// parts returns the memory of each process, if there are several.
func parts(u server.Usage) string {
	if len(u.Each) < 2 {
		return ""
	}
	said := ""
	for i, p := range u.Each {
		if i > 0 {
			said += " + "
		}
		said += fmt.Sprintf("%.0f", megabytes(p.Resident))
	}
	return said + " MB"
}

// must sends one request that has to succeed.
func (r *Run) must(ctx context.Context, q load.Request) (*load.Result, error) {
	got, err := load.Plan{Clients: 1, Count: 1, Make: func(_ int, out *load.Request) { *out = q }}.Run(ctx, r.server.Target)
	if err == nil && got.Errors > 0 {
		err = fmt.Errorf("%s", got.FirstError)
	}
	return got, err
}

func post(path string, body []byte) load.Request {
	return load.Request{Method: "POST", Path: path, ContentType: "application/json", Body: body}
}

func get(path string, least int) load.Request {
	return load.Request{Method: "GET", Path: path, Least: least}
}

// define creates a kind and its namespaces, and returns once objects of it can be created.
func (r *Run) define(ctx context.Context, k payload.Kind, namespaces ...string) (time.Duration, error) {
	for _, name := range append([]string{"first"}, namespaces...) {
		// The namespaces may exist, from another kind: 409 is a success.
		q := post("/api/v1/namespaces", payload.Namespace(name))
		q.Refusable = 409
		if _, err := r.must(ctx, q); err != nil {
			return 0, err
		}
	}
	c, err := load.Dial(ctx, r.server.Target)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	began := time.Now()
	q := post(payload.DefinitionsPath, k.Definition())
	if got, err := c.Do(&q); err != nil || got.Status != 201 {
		return 0, fmt.Errorf("defining %s: %d %s %v", k.Group, got.Status, got.Start, err)
	}
	q = post(k.Objects("first"), k.Widget("first", 0))
	return first(ctx, c, &q, began)
}

// servedWithin limits the time until a kind is served: the reference, with thousands of kinds, takes
// minutes.
const servedWithin = 10 * time.Minute

// first repeats a request until a new kind is served.
func first(ctx context.Context, c *load.Conn, q *load.Request, began time.Time) (time.Duration, error) {
	for {
		got, err := c.Do(q)
		took := time.Since(began)
		switch {
		case err != nil:
			return 0, err
		case got.Status == 201 || got.Status == 422:
			return took, nil
		case took > servedWithin:
			return 0, fmt.Errorf("a new kind is not served: %d %s", got.Status, got.Start)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// fill creates objects from number first on, as fast as possible.
func (r *Run) fill(ctx context.Context, k payload.Kind, namespace func(n int) string, first, count, clients int) (*load.Result, error) {
	got, err := load.Plan{Clients: clients, Count: count, Make: func(n int, q *load.Request) {
		n += first
		*q = post(k.Objects(namespace(n)), k.Widget(namespace(n), n))
		q.Least = payload.Least
	}}.Run(ctx, r.server.Target)
	if err == nil && got.Errors > 0 {
		err = fmt.Errorf("%d objects of %d were not made: %s", got.Errors, count, got.FirstError)
	}
	return got, err
}

func in(namespace string) func(int) string { return func(int) string { return namespace } }
