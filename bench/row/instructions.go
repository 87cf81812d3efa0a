package row

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/anykind/anykind/bench/load"
	"github.com/anykind/anykind/bench/payload"
	"github.com/anykind/anykind/bench/server"
)

// instructions counts what the process that serves the API does for a request. It
// does not depend on what else the machine does. etcd's are not counted.
func instructions(s Size) *Scenario {
	return &Scenario{
		Name: "instructions", Title: "Instructions of the process that serves the API (etcd's are not counted), by valgrind", Pairs: s.CurvePairs, Sides: server.Programs.AsShipped,
		Rows: []Row{
			{ID: "instructions-create", Title: "instructions for a create", Unit: " thousand"},
			{ID: "instructions-get", Title: "instructions for a get", Unit: " thousand"},
			{ID: "instructions-list", Title: "instructions for a list of 500 objects", Unit: " thousand"},
		},
		run: runInstructions,
	}
}

// Skipped is a scenario that needs what is not there.
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
		// valgrind does not understand the signals by which Go interrupts itself.
		Env:      []string{"GODEBUG=asyncpreemptoff=1"},
		Patience: r.size.Patience,
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
	dumps := 0
	for _, step := range []struct {
		id    string
		count int
		make  func(n int, q *load.Request)
	}{
		{"instructions-create", r.size.Counted, func(n int, q *load.Request) { *q = post(k.Objects("first"), k.Widget("first", 1+n)) }},
		{"instructions-get", r.size.Counted, func(n int, q *load.Request) { *q = get(k.Object("list", n), payload.Least) }},
		{"instructions-list", max(3, r.size.Counted/10), func(n int, q *load.Request) { *q = get(k.Objects("list"), 500*payload.Least) }},
	} {
		conn := load.Plan{Clients: 1, Warmup: 5, Make: step.make, Count: 1}
		if _, err := conn.Run(ctx, r.server.Target); err != nil {
			return err
		}
		if err := control(r.server, "-z"); err != nil {
			return err
		}
		plan := load.Plan{Clients: 1, Count: step.count, Make: func(n int, q *load.Request) { step.make(n+6, q) }}
		got, err := plan.Run(ctx, r.server.Target)
		if err != nil {
			return err
		}
		if err := control(r.server, "-d"); err != nil {
			return err
		}
		dumps++
		total, err := totals(fmt.Sprintf("%s.%d", counts, dumps))
		if err != nil {
			return err
		}
		r.putResult(step.id, float64(total)/float64(step.count)/1000, got)
	}
	return nil
}

// control tells callgrind to begin anew or to write down what it has.
func control(s *server.Server, what string) error {
	said, err := exec.Command("callgrind_control", what, strconv.Itoa(s.PID())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("callgrind_control: %w %s", err, said)
	}
	return nil
}

// totals reads how many instructions are in a file of callgrind.
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
