package app

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"
)

// looks counts the lists of cluster roles.
type looks struct {
	kv.Backend
	count *atomic.Int64
}

func (l looks) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	if strings.HasPrefix(r.Prefix, "/registry/clusterroles/") {
		l.count.Add(1)
	}
	return l.Backend.List(ctx, r)
}

// The first App that starts from a snapshot checks whether it has all default roles, and the next
// ones skip the check. A role that is missing in the snapshot is created by each App.
func TestRolesOfSnapshot(t *testing.T) {
	const role = "/registry/clusterroles/system:discovery"
	begin := func(from *Snapshot) (a *App, looked int64) {
		var count atomic.Int64
		a = start(t, Options{From: from, Controllers: []string{}, Hooks: Hooks{Store: func(b kv.Backend) kv.Backend { return looks{b, &count} }}})
		if _, err := a.backend.Get(t.Context(), role, kv.Latest); err != nil {
			t.Errorf("%s: %v", role, err)
		}
		return a, count.Load()
	}
	snapshot := func(a *App) *Snapshot {
		defer stop(t, a)
		a.backend = a.backend.(looks).Backend
		s, err := a.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	template, _ := begin(nil)
	found, err := template.backend.Get(t.Context(), role, kv.Latest)
	if err != nil {
		t.Fatal(err)
	}
	whole := snapshot(template)
	first, looked := begin(whole)
	second, lookedAgain := begin(whole)
	stop(t, second)
	if lookedAgain >= looked || !whole.roles.Load() {
		t.Errorf("cluster roles were listed %d times by the first, and %d times by the second", looked, lookedAgain)
	}
	if _, err := first.backend.Commit(t.Context(), kv.Write{Key: role, Expect: found.Revision}); err != nil {
		t.Fatal(err)
	}
	lacking := snapshot(first)
	for range 2 {
		a, _ := begin(lacking)
		stop(t, a)
	}
	if lacking.roles.Load() {
		t.Error("a snapshot without a role is said to have all")
	}
}
