package row

import (
	"context"
	"fmt"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// byRoles measures the cost of a user whose rights come from RBAC, in comparison with a member of
// system:masters.
func byRoles(s Size) *Scenario {
	sc := &Scenario{
		Name: "roles", Title: fmt.Sprintf("A user with a role among %d bindings", s.Bindings), Pairs: s.LongPairs, Sides: server.Programs.AsShipped,
		About: "Half of the bindings are ClusterRoleBindings, and half are RoleBindings in the namespace that the requests are for; the user is a subject of one of these. " +
			"A share is the processor time of a request of `system:masters`, in percent of that of a request of the user: 100 % if roles cost nothing.",
		run: runByRoles,
	}
	for _, step := range []string{"get", "create"} {
		sc.Rows = append(sc.Rows,
			Row{ID: "roles-" + step + "-masters", Title: step + " as `system:masters`, 32 clients", Unit: "/s", Higher: true},
			Row{ID: "roles-" + step + "-user", Title: step + " as the user, 32 clients", Unit: "/s", Higher: true},
			Row{ID: "roles-" + step + "-share", Title: step + ": share", Unit: " %", Higher: true, Aim: 90},
		)
	}
	return sc
}

func runByRoles(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	const namespace, objects = "list", 500
	if _, err := r.define(ctx, k, namespace); err != nil {
		return err
	}
	if err := r.configure(ctx, k.UserRole(namespace, server.User)...); err != nil {
		return err
	}
	got, err := load.Plan{Clients: clients, Count: r.size.Bindings, Make: func(n int, q *load.Request) {
		p := payload.OthersBinding(namespace, n)
		*q = post(p.Path, p.Body)
	}}.Run(ctx, r.server.Target)
	if err == nil && got.Errors > 0 {
		err = fmt.Errorf("%d bindings were not made: %s", got.Errors, got.FirstError)
	}
	if err != nil {
		return err
	}
	if _, err := r.fill(ctx, k, in(namespace), 0, objects, clients); err != nil {
		return err
	}
	gets := load.Plan{Clients: clients, Warmup: warmup, For: r.size.Read, Make: func(n int, q *load.Request) {
		*q = get(k.Object(namespace, n*7919%objects), payload.Least)
	}}
	if err := r.both(ctx, "get", gets, gets); err != nil {
		return err
	}
	creates := func(first int) load.Plan {
		return load.Plan{Clients: clients, Warmup: warmup, Count: r.size.Many, Make: func(n int, q *load.Request) {
			*q = post(k.Objects(namespace), k.Widget(namespace, first+n))
			q.Least = payload.Least
		}}
	}
	return r.both(ctx, "create", creates(objects), creates(objects+warmup+r.size.Many))
}

// both records a step as a member of system:masters, and as the user.
func (r *Run) both(ctx context.Context, step string, masters, user load.Plan) error {
	all, err := r.rateAs(ctx, "roles-"+step+"-masters", r.server.Target, masters)
	if err != nil {
		return err
	}
	bound, err := r.rateAs(ctx, "roles-"+step+"-user", r.server.As(server.User), user)
	if err != nil {
		return err
	}
	r.put("roles-"+step+"-share", 100*float64(all)/float64(max(bound, time.Nanosecond)), short(all)+" of "+short(bound))
	return nil
}
