package row

import (
	"context"
	"fmt"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// An encoding is the media type of objects in requests and responses.
type encoding struct {
	id, title   string
	contentType string
	object      func(b payload.Builtin, namespace string, n, revision int) []byte
}

var encodings = []encoding{
	{"json", "JSON", "application/json", payload.Builtin.JSON},
	{"protobuf", "protobuf", "application/vnd.kubernetes.protobuf", payload.Builtin.Protobuf},
}

// builtins measures writes and reads of built-in kinds.
func builtins(s Size) *Scenario {
	sc := &Scenario{
		Name: "builtin", Title: "Pods and Deployments", Pairs: s.Pairs, Sides: server.Programs.AsShipped,
		About: "Objects have two containers, with probes, variables, volumes and limits, and say what kube-apiserver's plugins would add. " +
			"In the rows of protobuf, creates and all answers are in protobuf; a patch is JSON, and what is applied is YAML, as clients send them.",
		run: runBuiltins,
	}
	for _, b := range payload.Builtins() {
		for _, e := range encodings {
			for _, step := range builtinSteps(s) {
				sc.Rows = append(sc.Rows, Row{
					ID: step.row(b, e), Title: fmt.Sprintf("%s: %s, %s", b.Name, step.title, e.title), Unit: "/s", Higher: true,
				})
			}
		}
	}
	return sc
}

// A builtinStep is one kind of request. The order of the steps is the order of the measurements.
type builtinStep struct {
	id, title string
	clients   int
	make      func(b payload.Builtin, e encoding, namespace string, n int) load.Request
}

func (s builtinStep) row(b payload.Builtin, e encoding) string {
	return b.Name + "-" + s.id + "-" + e.id
}

// builtinSteps begin with creates. The later steps use their objects.
func builtinSteps(s Size) []builtinStep {
	some := func(n int) int { return n * 7919 % s.Builtins }
	patched := func(contentType string, body func(b payload.Builtin, revision int) []byte) func(payload.Builtin, encoding, string, int) load.Request {
		return func(b payload.Builtin, e encoding, namespace string, n int) load.Request {
			return load.Request{Method: "PATCH", Path: b.Object(namespace, some(n)), ContentType: contentType, Body: body(b, n)}
		}
	}
	return []builtinStep{
		{"create", "create", clients, func(b payload.Builtin, e encoding, namespace string, n int) load.Request {
			return load.Request{Method: "POST", Path: b.Objects(namespace), ContentType: e.contentType, Body: e.object(b, namespace, n, 0)}
		}},
		{"get", "get", clients, func(b payload.Builtin, e encoding, namespace string, n int) load.Request {
			return load.Request{Method: "GET", Path: b.Object(namespace, some(n))}
		}},
		{"strategic", "strategic merge patch", clients, patched("application/strategic-merge-patch+json", payload.Builtin.StrategicPatch)},
		{"merge", "merge patch", clients, patched("application/merge-patch+json", payload.Builtin.MergePatch)},
		{"apply", "server-side apply", clients, func(b payload.Builtin, e encoding, namespace string, n int) load.Request {
			return load.Request{
				Method: "PATCH", Path: b.Object(namespace, some(n)) + "?fieldManager=bench-apply&force=true",
				ContentType: "application/apply-patch+yaml", Body: b.JSON(namespace, some(n), n),
			}
		}},
		{"list", fmt.Sprintf("list of %d, 4 clients", s.Builtins+warmup), 4, func(b payload.Builtin, e encoding, namespace string, n int) load.Request {
			return load.Request{Method: "GET", Path: b.Objects(namespace)}
		}},
	}
}

func runBuiltins(ctx context.Context, r *Run) error {
	for _, b := range payload.Builtins() {
		for _, e := range encodings {
			namespace := b.Name + "-" + e.id
			// A controller may have created the ServiceAccount: 409 is a success.
			account := post("/api/v1/namespaces/"+namespace+"/serviceaccounts", payload.ServiceAccount())
			account.Refusable = 409
			for _, q := range []load.Request{post("/api/v1/namespaces", payload.Namespace(namespace)), account} {
				if _, err := r.must(ctx, q); err != nil {
					return err
				}
			}
			for _, step := range builtinSteps(r.size) {
				if err := r.builtin(ctx, b, e, step, namespace); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *Run) builtin(ctx context.Context, b payload.Builtin, e encoding, step builtinStep, namespace string) error {
	plan := load.Plan{Clients: step.clients, Warmup: warmup, Count: r.size.Builtins}
	least := len(e.object(b, namespace, 0, 0)) // the response has more, from the server
	if step.id == "list" {
		plan.Warmup, plan.Count, plan.For = 4, 0, r.size.Read
		least *= r.size.Builtins
	}
	plan.Make = func(n int, q *load.Request) {
		*q = step.make(b, e, namespace, n)
		q.Accept, q.Least = e.contentType, least
	}
	return r.rate(ctx, step.row(b, e), plan)
}
