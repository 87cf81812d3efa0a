package linear

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/anykind/anykind/test/process"
)

// Options describe a history to record and check. All fields except Lossy are required.
type Options struct {
	Seed              uint64
	Clients, Requests int
	// Namespace is the name of a new namespace.
	Namespace string
	// Client returns an API with connections of its own.
	Client func() (process.API, error)
	// Lossy means that requests may remain without a response.
	Lossy bool
}

// A Result has the size of a checked history.
type Result struct {
	Requests, Unknown int
	Took              time.Duration // time of the search for an order
	Undecided         bool          // the search for an order timed out
}

// Check records one history and searches for its order.
func Check(ctx context.Context, o Options) (r Result, err error) {
	history, err := o.record(ctx)
	if err != nil {
		return r, err
	}
	resolveUnknown(history)
	r.Requests = len(history)
	for _, op := range history {
		if op.Output.(output).outcome == unknown {
			r.Unknown++
		}
	}
	began := time.Now()
	result, info := porcupine.CheckOperationsVerbose(model(), history, time.Minute)
	r.Took = time.Since(began)
	switch result {
	case porcupine.Ok:
	case porcupine.Unknown:
		r.Undecided = true
	default:
		at := filepath.Join(os.TempDir(), fmt.Sprintf("linear-%d-%s.html", o.Seed, o.Namespace))
		failed := porcupine.VisualizePath(model(), info, at)
		return r, fmt.Errorf("%s: there is no order in which these answers are right; %s shows them (%v)", o.Namespace, at, failed)
	}
	return r, nil
}

// resolveUnknown determines the outcome of writes without a response. If a value was read, its write happened
// before the response to that read.
func resolveUnknown(history []porcupine.Operation) {
	found := map[int]entry{}
	before := map[int]int64{}
	see := func(e entry, by int64) {
		if e.revision == 0 {
			return
		}
		if end, ok := before[e.value]; !ok || by < end {
			found[e.value], before[e.value] = e, by
		}
	}
	for _, op := range history {
		out := op.Output.(output)
		see(out.now, op.Return)
		for _, e := range out.all.entries {
			see(e, op.Return)
		}
	}
	for i := range history {
		op := &history[i]
		if op.Output.(output).outcome != unknown {
			continue
		}
		op.Return = math.MaxInt64
		if e, ok := found[op.Input.(input).value]; ok {
			op.Output, op.Return = output{now: e}, before[e.value]
		}
	}
}

// record runs clients in a namespace of its own.
func (o *Options) record(ctx context.Context) (history []porcupine.Operation, err error) {
	began := time.Now()
	var all []*client
	for i := range o.Clients {
		api, err := o.Client()
		if err != nil {
			return nil, err
		}
		defer api.Client.CloseIdleConnections()
		all = append(all, &client{
			number: i, random: rand.New(rand.NewPCG(o.Seed, uint64(i))), lossy: o.Lossy,
			api: api, path: "/api/v1/namespaces/" + o.Namespace + "/configmaps", began: began,
		})
	}
	in := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": o.Namespace}}
	for {
		err := all[0].api.Do(ctx, http.MethodPost, "/api/v1/namespaces", in, nil)
		var refused *process.Refused
		if err == nil || o.Lossy && errors.As(err, &refused) && refused.Reason() == "AlreadyExists" {
			break
		}
		if !o.Lossy || !process.Unanswered(err) || ctx.Err() != nil {
			return nil, err
		}
	}
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, c := range all {
		group.Go(func() { errs[i] = c.run(ctx, o.Requests) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for _, c := range all {
		history = append(history, c.history...)
	}
	return history, nil
}
