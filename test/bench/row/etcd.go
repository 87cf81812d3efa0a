package row

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// overEtcd returns a scenario with rows of its own in which both servers use the same kind of etcd.
// The aims are for anykind over its file.
func (s *Scenario) overEtcd(title string) *Scenario {
	other := *s
	other.Name, other.Title, other.Sides, other.prefix = "etcd-"+s.Name, title, server.Programs.OverEtcd, "etcd-"
	other.About = "Both sides are one server and one member of etcd, of the same program with the same flags, spoken to without TLS; both answer a write after etcd's fdatasync. Memory and processor are of both processes together, and what is etcd's is said."
	other.Rows = slices.Clone(s.Rows)
	for i := range other.Rows {
		r := &other.Rows[i]
		r.ID, r.Title, r.Aim, r.Stood = other.prefix+r.ID, r.Title+", over etcd", 0, 0
	}
	return &other
}

// etcdTable is the table over etcd, with the memory of each process.
func etcdTable(s Size) *Scenario {
	sc := table(s).overEtcd("Over etcd: one server from its start to the end of the load")
	sc.Rows = append(sc.Rows,
		Row{ID: "etcd-after-server", Title: "memory after that run: the server's", Unit: "MB"},
		Row{ID: "etcd-after-etcd", Title: "memory after that run: etcd's", Unit: "MB"},
	)
	whole := sc.run
	sc.run = func(ctx context.Context, r *Run) error {
		if err := whole(ctx, r); err != nil {
			return err
		}
		return r.memoryOf("after")
	}
	return sc
}

// memoryOf records the memory of each process.
func (r *Run) memoryOf(id string) error {
	u, err := r.server.Usage()
	if err != nil {
		return err
	}
	r.put(id+"-server", megabytes(u.Of(serving).Resident), "")
	r.put(id+"-etcd", megabytes(u.Of(storing).Resident), "")
	return nil
}

func storing(process string) bool { return process == server.Etcd }
func serving(process string) bool { return process != server.Etcd }

// etcdDefinitions is the large load of definitions, over etcd.
func etcdDefinitions(s Size, corpus *payload.Corpus) *Scenario {
	sc := definitions(s, corpus)
	return sc.overEtcd("Over etcd: " + sc.Title)
}

// share is the CPU share of each server in the scenario with several servers: three of them, etcd and
// the client have to fit on two cores.
const share = 0.2

// byServers measures the scaling of reads with the number of servers over one etcd.
func byServers(s Size) *Scenario {
	var rows []Row
	for _, read := range reads {
		rows = append(rows,
			Row{ID: "servers-" + read.id, Title: read.title + ", each server held to a fifth of a core", Unit: "/s", Higher: true},
			Row{ID: "servers-" + read.id + "-cost", Title: read.title + ", processor time of the servers for each", Unit: " µs"},
		)
	}
	return &Scenario{
		Name: "etcd-servers", Title: "Servers over one etcd", Pairs: s.CurvePairs, Sides: server.Programs.OverEtcd,
		Curve: &Curve{
			Along: "servers",
			Shape: "One to three servers over one member of etcd, and 32 clients, spread evenly. All of it is on this machine, whose cores one server keeps busy, so three of them cannot answer more by much. To see what more machines would do, each server is held to a fifth of one core (it is stopped while it is ahead of that), so that three of them, etcd and the client have room; etcd is not held. Beside it is what a read takes of the processor when no server is held back, what of that is etcd's, and how many the machine then answers: as long as the time does not grow with the number of servers, each one adds as many reads as it has processor, until etcd has none left. Reads without a resourceVersion are consistent: they have seen all that was written before they were asked. 500 objects are listed.",
			Rows:  rows,
		},
		run: runByServers,
	}
}

// listed is the number of objects in the lists of byServers.
const listed = 500

// A read is one kind of request that spreads over servers.
type read struct {
	id, title string
	make      func(r *Run, k payload.Kind, n int) load.Request
}

var reads = []read{
	{"get", "consistent gets", func(r *Run, k payload.Kind, n int) load.Request {
		return get(k.Object("list", n*7919%listed), payload.Least)
	}},
	{"get-any", "gets at resourceVersion 0", func(r *Run, k payload.Kind, n int) load.Request {
		return get(k.Object("list", n*7919%listed)+"?resourceVersion=0", payload.Least)
	}},
	{"list", "consistent lists", func(r *Run, k payload.Kind, n int) load.Request {
		return get(k.Objects("list"), payload.Least*listed)
	}},
	{"list-any", "lists at resourceVersion 0", func(r *Run, k payload.Kind, n int) load.Request {
		return get(k.Objects("list")+"?resourceVersion=0", payload.Least*listed)
	}},
}

func runByServers(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "list"); err != nil {
		return err
	}
	if _, err := r.fill(ctx, k, in("list"), 0, listed, clients); err != nil {
		return err
	}
	for servers := 1; servers <= 3; servers++ {
		for _, o := range []server.Options{{Servers: servers}, {Servers: servers, Share: share}} {
			if err := r.restart(ctx, o); err != nil {
				return err
			}
			for _, t := range r.server.Targets {
				if err := r.knows(ctx, t, get(k.Objects("list"), payload.Least*listed)); err != nil {
					return err
				}
			}
			if err := settle(ctx, r.size.Settle); err != nil {
				return err
			}
			for _, read := range reads {
				if err := r.spread(ctx, read, k, o); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// knows waits until a server that has just started answers a request with success.
func (r *Run) knows(ctx context.Context, t load.Target, q load.Request) error {
	c, err := load.Dial(ctx, t)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = served(ctx, c, &q)
	return err
}

// spread measures clients that read from all servers.
func (r *Run) spread(ctx context.Context, read read, k payload.Kind, o server.Options) error {
	before, err := r.server.Usage()
	if err != nil {
		return err
	}
	plan := load.Plan{Clients: clients, Warmup: 2 * clients, For: r.size.Read, Make: func(n int, q *load.Request) { *q = read.make(r, k, n) }}
	got, err := plan.Run(ctx, r.server.Targets...)
	if err != nil {
		return err
	}
	after, err := r.server.Usage()
	if err != nil {
		return err
	}
	requests := time.Duration(plan.Warmup + got.Done + got.Errors)
	each := func(some func(string) bool) time.Duration {
		return (after.Of(some).CPU - before.Of(some).CPU) / requests
	}
	id := "servers-" + read.id
	v := Value{Value: got.Rate(), Errors: got.Errors, FirstError: got.FirstError, Detail: percentiles(got)}
	if o.Share == 0 {
		id += "-cost"
		v.Value = float64(each(serving)) / float64(time.Microsecond)
		v.Detail = fmt.Sprintf("and %s of etcd, at %.0f/s", short(each(storing)), got.Rate())
	}
	r.point(id, o.Servers, v)
	return nil
}
