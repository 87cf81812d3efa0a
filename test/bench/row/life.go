package row

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// A life is the size of a cluster.
type life struct {
	Nodes, Deployments, Replicas int
}

// aLife measures a cluster's life. Rows of single requests do not show its cost.
func aLife(s Size) *Scenario {
	l := s.Life
	return &Scenario{
		Name: "life", Title: fmt.Sprintf("A cluster's life: %d nodes, %d Deployments of %d pods", l.Nodes, l.Deployments, l.Replicas), Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		About: "The published kube-scheduler and kube-controller-manager, and kwok as all kubelets, share the machine with the server. The Deployments are created, rolled and scaled to nothing. " +
			"Then there is a minute in which nodes only send heartbeats. Requests are those that the metrics of the server count, watches included.",
		Rows: []Row{
			{ID: "life-request", Title: "a cluster's life: processor time for a request", Unit: "CPU ms"},
			{ID: "life-ready", Title: "a cluster's life: pods ready, rolled, gone", Unit: "s"},
			{ID: "life-peak", Title: "a cluster's life: memory at its peak", Unit: "MB"},
			{ID: "life-idle", Title: "a cluster's life: processor time of an idle minute", Unit: "CPU s"},
			{ID: "life-disk", Title: "a cluster's life: files after it", Unit: "MB"},
		},
		run: runLife,
	}
}

func runLife(ctx context.Context, r *Run) error {
	l := r.size.Life
	cluster, err := r.server.StartCluster(filepath.Join(filepath.Dir(r.dir), "cluster"), r.dir)
	if err != nil {
		return err
	}
	defer cluster.Stop()
	nodes, err := load.Plan{Clients: 4, Count: l.Nodes, Make: func(n int, q *load.Request) {
		*q = post("/api/v1/nodes", payload.Node(n))
	}}.Run(ctx, r.server.Target)
	if err != nil || nodes.Errors > 0 {
		return fmt.Errorf("nodes: %s, %w", nodes.FirstError, err)
	}
	ready := regexp.MustCompile(`"status":\s*"True"[^{}]*"type":\s*"Ready"|"type":\s*"Ready"[^{}]*"status":\s*"True"`)
	if err := r.until(ctx, cluster, "/api/v1/nodes", func(body string) bool { return len(ready.FindAllString(body, -1)) == l.Nodes }); err != nil {
		return err
	}
	if err := settle(ctx, r.size.Settle); err != nil {
		return err
	}
	before, err := r.lived(ctx)
	if err != nil {
		return err
	}
	took, err := r.live(ctx, cluster, l)
	if err != nil {
		return err
	}
	after, err := r.lived(ctx)
	if err != nil {
		return err
	}
	requests := after.requests - before.requests
	r.put("life-request", milliseconds(after.CPU-before.CPU)/requests, fmt.Sprintf("%.0f requests, %.0f of them answered 429", requests, after.refused-before.refused))
	r.put("life-ready", (took[0] + took[1] + took[2]).Seconds(), fmt.Sprintf("%.1f + %.1f + %.1f", took[0].Seconds(), took[1].Seconds(), took[2].Seconds()))
	r.put("life-peak", megabytes(after.Peak), parts(after.Usage))
	if err := settle(ctx, 10*r.size.Settle); err != nil {
		return err
	}
	if before, err = r.lived(ctx); err != nil {
		return err
	}
	if err := settle(ctx, time.Minute); err != nil {
		return err
	}
	if after, err = r.lived(ctx); err != nil {
		return err
	}
	r.put("life-idle", (after.CPU - before.CPU).Seconds(), fmt.Sprintf("%.0f requests", after.requests-before.requests))
	disk, err := server.Disk(r.dir)
	if err != nil {
		return err
	}
	r.put("life-disk", megabytes(disk), "")
	return cluster.Failed()
}

// live creates the Deployments, rolls them and scales them to nothing, and returns the times until all pods are ready, new, and
// gone.
func (r *Run) live(ctx context.Context, cluster *server.Cluster, l life) (took [3]time.Duration, err error) {
	done := func(fields ...string) func(string) bool {
		return func(body string) bool {
			for _, f := range fields {
				if strings.Count(body, fmt.Sprintf(`"%s":%d`, f, l.Replicas)) < l.Deployments {
					return false
				}
			}
			return true
		}
	}
	none := func(body string) bool { return !strings.Contains(body, `"metadata":{"name":`) }
	for i, step := range []struct {
		make  func(n int, q *load.Request)
		path  string
		until func(body string) bool
	}{
		{func(n int, q *load.Request) { *q = post(payload.Fleet, payload.FleetDeployment(n, l.Replicas)) }, payload.Fleet, done("readyReplicas", "updatedReplicas")},
		{func(n int, q *load.Request) {
			*q = change(payload.FleetMember(n), `{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
		}, payload.Fleet, func(body string) bool {
			return done("readyReplicas", "updatedReplicas")(body) && strings.Count(body, `"observedGeneration":2`) == l.Deployments &&
				strings.Count(body, fmt.Sprintf(`"replicas":%d,`, l.Replicas)) >= 2*l.Deployments // in spec and status
		}},
		{func(n int, q *load.Request) { *q = change(payload.FleetMember(n), `{"spec":{"replicas":0}}`) }, "/api/v1/namespaces/default/pods?limit=1", none},
	} {
		began := time.Now()
		got, err := load.Plan{Clients: 4, Count: l.Deployments, Make: step.make}.Run(ctx, r.server.Target)
		if err != nil || got.Errors > 0 {
			return took, fmt.Errorf("step %d: %s, %w", i, got.FirstError, err)
		}
		if err := r.until(ctx, cluster, step.path, step.until); err != nil {
			return took, fmt.Errorf("step %d: %w", i, err)
		}
		took[i] = time.Since(began)
	}
	return took, nil
}

func change(path, body string) load.Request {
	return load.Request{Method: http.MethodPatch, Path: path, ContentType: "application/merge-patch+json", Body: []byte(body)}
}

// lifeWithin limits a step of a life.
const lifeWithin = 20 * time.Minute

// until reads a path until its body has something.
func (r *Run) until(ctx context.Context, cluster *server.Cluster, path string, has func(body string) bool) error {
	for began := time.Now(); ; {
		body, err := whole(ctx, r.server.Target, path)
		if err != nil {
			return err
		}
		if has(body) {
			return nil
		}
		if err := cluster.Failed(); err != nil {
			return err
		}
		if time.Since(began) > lifeWithin {
			return fmt.Errorf("%s: after %v it is still %.300s", path, lifeWithin, body)
		}
		if err := settle(ctx, 250*time.Millisecond); err != nil {
			return err
		}
	}
}

// lived is the usage of a server and the requests that it has counted.
type lived struct {
	server.Usage
	requests, refused float64
}

var requestTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{.*code="(\d+)".*\} (\S+)$`)

func (r *Run) lived(ctx context.Context) (l lived, err error) {
	text, err := whole(ctx, r.server.Target, "/metrics")
	if err != nil {
		return l, err
	}
	for _, m := range requestTotal.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			return l, err
		}
		if l.requests += n; m[1] == "429" {
			l.refused += n
		}
	}
	l.Usage, err = r.server.Usage()
	return l, err
}

// whole returns a whole body.
func whole(ctx context.Context, t load.Target, path string) (string, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: t.TLS}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+t.Address+path, nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+t.Token)
	answer, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	var b strings.Builder
	_, err = io.Copy(&b, answer.Body)
	return b.String(), err
}
