package row

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// instructions counts the CPU instructions of anykind for a request. The number does not depend on the
// load of the machine, so it is comparable between versions.
func instructions(s Size) *Scenario {
	return &Scenario{
		Name: "instructions", Title: "Instructions for a request, by valgrind", Alone: true, Pairs: 1, Sides: server.Programs.AsShipped,
		About: "A mean over requests that one client sends on one connection to a server with one processor, with what comes with them: encryption, garbage collection, all but the system's own work. " +
			"It does not depend on what else the machine does, so it can be compared with the figures of another version. " +
			"kube-apiserver does not become ready under valgrind in a quarter of an hour, so there is nothing beside it.",
		Rows: []Row{
			{ID: "instructions-create", Title: "instructions for a create", Unit: " thousand"},
			{ID: "instructions-get", Title: "instructions for a get", Unit: " thousand"},
			{ID: "instructions-list", Title: "instructions for a list of 500 objects", Unit: " thousand"},
			{ID: "instructions-patch", Title: "instructions for a merge patch", Unit: " thousand"},
			{ID: "instructions-apply", Title: "instructions for a server-side apply", Unit: " thousand"},
		},
		run: runInstructions,
	}
}

// Skipped is the error of a scenario whose prerequisites are missing.
type Skipped struct{ Why string }

func (s *Skipped) Error() string { return s.Why }

func runInstructions(ctx context.Context, r *Run) error {
	if _, err := exec.LookPath("valgrind"); err != nil {
		return &Skipped{"valgrind is not installed"}
	}
	if err := r.server.Stop(); err != nil {
		return err
	}
	counts := filepath.Join(r.dir, "callgrind.out")
	err := r.start(ctx, server.Options{
		Wrap: []string{"valgrind", "--tool=callgrind", "--callgrind-out-file=" + counts},
		// valgrind does not support the signals of Go's preemption. With one processor, idle threads
		// that look for work are not counted.
		Env:          []string{"GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1"},
		StartTimeout: 10 * time.Minute,
	})
	if err != nil {
		return err
	}
	k := payload.Kind{Group: payload.Group}
	if _, err := r.define(ctx, k, "list"); err != nil {
		return err
	}
	if _, err := r.fill(ctx, k, in("list"), 0, 500, 4); err != nil {
		return err
	}
	some := func(n int) int { return n * 7919 % 500 }
	for i, step := range []struct {
		id    string
		count int
		make  func(n int, q *load.Request)
	}{
		{"instructions-create", r.size.Counted, func(n int, q *load.Request) { *q = post(k.Objects("first"), k.Widget("first", 1+n)) }},
		{"instructions-get", 5 * r.size.Counted, func(n int, q *load.Request) { *q = get(k.Object("list", some(n)), payload.Least) }},
		{"instructions-list", max(3, r.size.Counted/10), func(n int, q *load.Request) { *q = get(k.Objects("list"), 500*payload.Least) }},
		{"instructions-patch", r.size.Counted, func(n int, q *load.Request) { *q = patch(k.Object("list", some(n)), n) }},
		{"instructions-apply", r.size.Counted, func(n int, q *load.Request) { *q = apply(k, "list", some(n), n) }},
	} {
		got, err := load.Plan{
			Clients: 1, Warmup: 10, Count: step.count, Make: step.make,
			Begin: func() error { return control(r.server, "-z") },
		}.Run(ctx, r.server.Target)
		if err != nil {
			return err
		}
		if err := control(r.server, "-d"); err != nil {
			return err
		}
		total, err := totals(fmt.Sprintf("%s.%d", counts, i+1))
		if err != nil {
			return err
		}
		r.putResult(step.id, float64(total)/float64(step.count)/1000, got)
		v := r.Values[step.id]
		v.Detail = fmt.Sprintf("%d requests", step.count) // the latency would be valgrind's
		r.Values[step.id] = v
	}
	return nil
}

// control tells callgrind to reset or to dump its counters.
func control(s *server.Server, what string) error {
	said, err := exec.Command("callgrind_control", what, strconv.Itoa(s.PID())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("callgrind_control: %w %s", err, said)
	}
	return nil
}

// totals reads the number of instructions from a file of callgrind.
func totals(name string) (int64, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		for _, key := range []string{"totals: ", "summary: "} {
			if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
				return strconv.ParseInt(string(bytes.TrimSpace(rest)), 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("%s has no totals", name)
}
