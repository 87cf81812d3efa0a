package row

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// byWebhooks measures the cost of admission webhooks that do not match, and of one that does.
func byWebhooks(s Size) *Scenario {
	return &Scenario{
		Name: "webhooks", Title: "Admission webhooks", Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		About: "Each configuration has one validating webhook. The one that is asked answers from the process that makes the load.",
		Rows: []Row{
			{ID: "webhooks-0", Title: "create without webhooks, 32 clients", Unit: "/s", Higher: true},
			{ID: "webhooks-1", Title: "create with 1 webhook for other kinds", Unit: "/s", Higher: true},
			{ID: "webhooks-100", Title: "create with 100 webhooks for other kinds", Unit: "/s", Higher: true},
			{ID: "webhooks-asked", Title: "create with 1 webhook that is asked", Unit: "/s", Higher: true},
		},
		run: runByWebhooks,
	}
}

func runByWebhooks(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	const namespace = "list"
	if _, err := r.define(ctx, k, namespace); err != nil {
		return err
	}
	hook := newHook()
	defer hook.Close()
	made := 0
	creates := func(count int) load.Plan {
		first := made
		made += warmup + count
		return load.Plan{Clients: clients, Warmup: warmup, Count: count, Make: func(n int, q *load.Request) {
			*q = post(k.Objects(namespace), k.Widget(namespace, first+n))
			q.Least = payload.Least
		}}
	}
	configured := 0
	for _, step := range []int{0, 1, 100} {
		for ; configured < step; configured++ {
			if err := r.configure(ctx, payload.Webhook(configured, "nothing.example.com", hook.URL, hook.ca())); err != nil {
				return err
			}
		}
		if _, err := r.rateAs(ctx, fmt.Sprintf("webhooks-%d", step), r.server.Target, creates(r.size.Many)); err != nil {
			return err
		}
	}
	if err := r.configure(ctx, payload.Webhook(configured, k.Group, hook.URL, hook.ca())); err != nil {
		return err
	}
	for again := time.NewTicker(50 * time.Millisecond); hook.asked.Load() == 0; <-again.C {
		if _, err := r.must(ctx, post(k.Objects(namespace), k.Widget(namespace, made))); err != nil {
			return err
		}
		made++
	}
	_, err := r.rateAs(ctx, "webhooks-asked", r.server.Target, creates(r.size.Many/2))
	return err
}

func (r *Run) configure(ctx context.Context, parts ...payload.Part) error {
	for _, p := range parts {
		if _, err := r.must(ctx, post(p.Path, p.Body)); err != nil {
			return err
		}
	}
	return nil
}

// A hook is a webhook that allows every request.
type hook struct {
	*httptest.Server
	asked atomic.Int64
}

func newHook() *hook {
	h := &hook{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		var review struct{ Request struct{ UID string } }
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
	}))
	return h
}

func (h *hook) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw})
}
