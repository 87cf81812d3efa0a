package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var (
	rounds = flag.Int("rounds", 5, "number of times that the server is killed; at most 2 with -short")
	seed   = flag.Uint64("seed", 0, "of what is random; 0 takes another one each time")
)

const writers = 8

// A run is one server with its clients, across all restarts.
type run struct {
	*testing.T
	program, dir, address string
	flags                 []string

	random  *rand.Rand
	ledger  *ledger
	count   *counter
	watcher *watcher
	writers []*writer
	marker  int64
}

// begin creates a run from a seed, which it logs.
func begin(t *testing.T) *run {
	t.Helper()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	t.Logf("again with -seed %d", *seed)
	program, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	return newRun(t, program)
}

func TestCrash(t *testing.T) {
	r := begin(t)
	server := r.start()
	r.prepare(server)
	for round := range kills() {
		server = r.round(server, round)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	t.Logf("%d rounds: %d writes acknowledged, %d events seen, revision %d", kills(), r.ledger.acknowledged(), r.watcher.events, r.watcher.revision)
}

// kills returns how often a test kills its server.
func kills() int {
	if testing.Short() {
		return min(*rounds, 2)
	}
	return *rounds
}

func newRun(t *testing.T, program string) *run {
	r := &run{
		T: t, program: program, dir: t.TempDir(),
		random:  rand.New(rand.NewPCG(*seed, 0)),
		ledger:  newLedger(),
		count:   &counter{},
		watcher: newWatcher(),
	}
	for i := range writers {
		r.writers = append(r.writers, &writer{
			number: i, random: rand.New(rand.NewPCG(*seed, uint64(i)+1)), ledger: r.ledger, count: r.count,
		})
	}
	return r
}

// start starts the server on the existing data. After the first time, the address stays the same for
// the clients.
func (r *run) start() *process.Server {
	r.Helper()
	server, err := process.Start(r.Context(), r.program, r.dir, r.address, r.flags...)
	if err != nil {
		r.Fatal(err)
	}
	r.address = server.Address()
	return server
}

func (r *run) api(server *process.Server) process.API {
	r.Helper()
	client, err := process.Client(server.Kubeconfig)
	if err != nil {
		r.Fatal(err)
	}
	return process.API{Client: client, URL: server.URL}
}

// prepare creates the definition and the shared object, and starts the watcher before them.
func (r *run) prepare(server *process.Server) {
	r.Helper()
	api := r.api(server)
	defer api.Client.CloseIdleConnections()
	if err := api.Do(r.Context(), http.MethodPost, definition, definitionOf(), nil); err != nil {
		r.Fatal(err)
	}
	_, r.watcher.revision = r.stored(api)
	if err := api.Do(r.Context(), http.MethodPost, path, newRecord(shared, 0, ""), nil); err != nil {
		r.Fatal(err)
	}
}

// round lets clients write until the server is killed, restarts it, and checks.
func (r *run) round(server *process.Server, round int) *process.Server {
	r.Helper()
	r.write(server)
	server = r.revive()
	r.check(server, round)
	return server
}

// revive restarts the killed server, sometimes after kills during its start.
func (r *run) revive() *process.Server {
	r.Helper()
	if r.random.IntN(4) == 0 {
		r.dieStarting()
	}
	return r.start()
}

// write runs all writers until the server is killed.
func (r *run) write(server *process.Server) {
	r.Helper()
	var clients []client
	for _, w := range r.writers {
		clients = append(clients, func(ctx context.Context, api process.API, acked func()) error {
			w.acked = acked
			return w.run(ctx, api)
		})
	}
	clients = append(clients, func(ctx context.Context, api process.API, _ func()) error { return r.watcher.follow(ctx, api, "") })
	r.untilKilled(server, clients, 4096)
}

// A client sends requests until its server is gone, and calls acked for each response. Its error is a
// violation.
type client func(ctx context.Context, api process.API, acked func()) error

// untilKilled runs all clients until the server is killed, at the latest after most responses.
func (r *run) untilKilled(server *process.Server, clients []client, most int) {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	kill := sync.OnceFunc(func() {
		server.Kill()
		cancel() // a client need not wait for a response that will not come
	})
	left := make(chan struct{}, most) // a token for each response before the kill
	for range r.random.IntN(cap(left)) {
		left <- struct{}{}
	}
	if r.random.IntN(2) == 0 { // at any moment, not only after a response
		timer := time.AfterFunc(time.Duration(r.random.IntN(int(time.Second))), kill)
		defer timer.Stop()
	}
	var all sync.WaitGroup
	problems := make(chan error, len(clients))
	acked := func() {
		select {
		case <-left:
		default:
			kill()
		}
	}
	for _, c := range clients {
		api := r.api(server)
		all.Go(func() { problems <- c(ctx, api, acked) })
	}
	go func() {
		all.Wait()
		close(problems)
	}()
	for err := range problems {
		if err != nil {
			kill()
			r.Error(err)
		}
	}
	if r.Failed() {
		r.FailNow()
	}
}

// dieStarting kills a server before it is ready.
func (r *run) dieStarting() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(r.random.IntN(int(20*time.Millisecond))))
	defer cancel()
	if server, err := process.Start(ctx, r.program, r.dir, r.address, r.flags...); err == nil {
		server.Kill()
	}
}

// check compares the server's objects with the clients' records.
func (r *run) check(server *process.Server, round int) {
	r.Helper()
	api := r.api(server)
	defer api.Client.CloseIdleConnections()

	// A last event for the watcher to wait for.
	r.marker++
	mark := newRecord(fmt.Sprintf("marker-%d", r.marker), r.marker, "")
	stored, _ := r.stored(api)
	if err := api.Do(r.Context(), http.MethodPost, path, mark, &mark); err != nil {
		r.Fatal(err)
	}
	if err := r.watcher.follow(r.Context(), r.api(server), mark.Metadata.Name); err != nil {
		r.Fatalf("round %d: %v", round, err)
	}
	now, revision := r.stored(api)
	if revision < r.watcher.revision {
		r.Errorf("round %d: a list at revision %d, after an event at %d", round, revision, r.watcher.revision)
	}
	counted := stored[shared].value
	delete(stored, shared)
	if err := errors.Join(r.watcher.compare(now), r.ledger.verify(stored), r.count.verify(counted)); err != nil {
		r.Fatalf("round %d: %v", round, err)
	}
	marked := now[mark.Metadata.Name]
	err := r.ledger.acknowledge(mark.Metadata.Name, marked)
	if err := errors.Join(err, r.ledger.missing(r.watcher.all)); err != nil {
		r.Fatalf("round %d: %v", round, err)
	}
}

// stored lists all records, and returns the revision of the list.
func (r *run) stored(api process.API) (map[string]version, int64) {
	r.Helper()
	var list struct {
		Metadata metadata `json:"metadata"`
		Items    []record `json:"items"`
	}
	if err := api.Do(r.Context(), http.MethodGet, path, nil, &list); err != nil {
		r.Fatal(err)
	}
	stored := map[string]version{}
	for _, item := range list.Items {
		revision, err := item.revision()
		if err = errors.Join(err, item.check()); err != nil {
			r.Fatal(err)
		}
		stored[item.Metadata.Name] = version{present: true, value: item.Spec.Value, revision: revision}
	}
	revision, err := record{Metadata: list.Metadata}.revision()
	if err != nil {
		r.Fatal(err)
	}
	return stored, revision
}
