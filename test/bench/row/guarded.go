package row

import (
	"context"
	"fmt"
	"slices"

	"github.com/anykind/anykind/test/bench/payload"
	"github.com/anykind/anykind/test/bench/server"
)

// guarded measures the cost of all protection together.
func guarded(s Size) *Scenario {
	sc := &Scenario{
		Name: "guarded", Title: "Everything on: the cost of protection", Pairs: s.Pairs, Sides: server.Programs.Guarded, prefix: "guarded-",
		About: fmt.Sprintf("Both columns are anykind. The first one audits every request (Metadata, to a file), encrypts every object with a KMS plugin, has priority and fairness, RBAC and %d admission policies that match each write. "+
			"The second one has none of it. The aim is 0.9 times.", server.Policies),
		run: runGuarded,
	}
	measured := []string{"create-1", "create-32", "get-32", "list", "patch-32", "apply-32", "delete-32"}
	for _, r := range table(s).Rows {
		if slices.Contains(measured, r.ID) {
			sc.Rows = append(sc.Rows, Row{ID: sc.prefix + r.ID, Title: r.Title + ", everything on", Unit: r.Unit, Higher: r.Higher})
		}
	}
	return sc
}

func runGuarded(ctx context.Context, r *Run) error {
	k := payload.Kind{Group: payload.Group}
	namespaces := []string{"warm", "one", "list", "rest"}
	if _, err := r.define(ctx, k, namespaces...); err != nil {
		return err
	}
	for _, namespace := range namespaces {
		if err := r.configure(ctx, k.UserRole(namespace, server.User)...); err != nil {
			return err
		}
	}
	r.server.Target = r.server.As(server.User)
	for _, step := range []func(context.Context, payload.Kind) error{r.creates, r.reads, r.patches, r.deletes} {
		if err := step(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
