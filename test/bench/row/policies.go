package row

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// byPolicies measures the cost of admission policies that do not match, and of one that does.
func byPolicies(s Size) *Scenario {
	return &Scenario{
		Name: "policies", Title: "Admission policies", Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		About: "Each ValidatingAdmissionPolicy has one binding, a variable and two validations.",
		Rows: []Row{
			{ID: "policies-0", Title: "create without policies, 32 clients", Unit: "/s", Higher: true},
			{ID: "policies-1", Title: "create with 1 policy for other kinds", Unit: "/s", Higher: true},
			{ID: "policies-100", Title: "create with 100 policies for other kinds", Unit: "/s", Higher: true},
			{ID: "policies-asked", Title: "create with 1 policy that is asked", Unit: "/s", Higher: true},
		},
		run: runByPolicies,
	}
}

func runByPolicies(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	const namespace = "list"
	if _, err := r.define(ctx, k, namespace); err != nil {
		return err
	}
	made := 0
	creates := func(id string) error {
		first := made
		made += warmup + r.size.Many
		_, err := r.rateAs(ctx, id, r.server.Target, load.Plan{Clients: clients, Warmup: warmup, Count: r.size.Many, Make: func(n int, q *load.Request) {
			*q = post(k.Objects(namespace), k.Widget(namespace, first+n))
			q.Least = payload.Least
		}})
		return err
	}
	policies := 0
	add := func(group string) error {
		policies++
		return r.configure(ctx, payload.Policy(policies-1, group)...)
	}
	for _, step := range []int{0, 1, 100} {
		for policies < step {
			if err := add("nothing.example.com"); err != nil {
				return err
			}
		}
		if err := creates(fmt.Sprintf("policies-%d", step)); err != nil {
			return err
		}
	}
	if err := add(k.Group); err != nil {
		return err
	}
	if err := r.untilAsked(ctx, k, namespace); err != nil {
		return err
	}
	return creates("policies-asked")
}

// untilAsked waits until the policies are in force.
func (r *Run) untilAsked(ctx context.Context, k payload.Kind, namespace string) error {
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		_, err := r.must(ctx, post(k.Objects(namespace)+"?dryRun=All", k.Widget(namespace, payload.Probed)))
		if err != nil && strings.Contains(err.Error(), payload.ProbeRefused) {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
