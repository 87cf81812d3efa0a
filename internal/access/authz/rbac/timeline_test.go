package rbac

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/store/kv"
)

// A Timeline that moves back and forth decides as the State of each revision does.
func TestTimeline(t *testing.T) {
	w := newWorld(t)
	random := rand.New(rand.NewPCG(3, 9))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	meta := func(kind string) (namespace, metadata string) {
		if kind == "Role" || kind == "RoleBinding" {
			namespace = pick("dev", "test")
		}
		return namespace, fmt.Sprintf("metadata: {name: %s, namespace: %q}", pick("a", "b", "c"), namespace)
	}
	for range 300 {
		kind := pick("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
		namespace, metadata := meta(kind)
		switch {
		case random.IntN(3) == 0:
			name := pick("a", "b", "c")
			if _, err := w.backend.Get(t.Context(), w.key(map[string]any{"kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}}), kv.Latest); err == nil {
				w.remove(kind, namespace, name)
			}
		case kind == "Role" || kind == "ClusterRole":
			w.store(fmt.Sprintf("kind: %s\n%s\nrules: [{apiGroups: [''], resources: [%s], verbs: [%s]}]", kind, metadata, pick("pods", "secrets"), pick("list", "get", "'*'")))
		default:
			of := "ClusterRole"
			if kind == "RoleBinding" {
				of = pick("Role", "ClusterRole")
			}
			w.store(fmt.Sprintf("kind: %s\n%s\nroleRef: {kind: %s, name: %s}\nsubjects: [{kind: User, name: %s}, {kind: Group, name: devs}]", kind, metadata, of, pick("a", "b", "c"), pick("ann", "bob")))
		}
	}
	revision, err := w.backend.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := &historian{all: eventsOf(t, w.backend, revision)}
	past := NewPast(w.backend, w.set)
	start := 1 + random.Int64N(revision)
	line, err := past.Timeline(t.Context(), h, start)
	if err != nil {
		t.Fatal(err)
	}
	same := func(at int64) {
		t.Helper()
		want, err := past.At(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range []*request.User{{Name: "ann"}, {Name: "bob", Groups: []string{"devs"}}} {
			for _, words := range []string{"list pods dev/", "list secrets test/", "get pods", "get secrets dev/x"} {
				decision, reason, _ := line.Authorize(t.Context(), asked(u, words))
				if right, because, _ := want.Authorize(t.Context(), asked(u, words)); decision != right || reason != because {
					t.Fatalf("at %d: %s %s: %v %q, want %v %q", at, u.Name, words, decision, reason, right, because)
				}
			}
		}
	}
	same(start)
	move := func(to int64) {
		t.Helper()
		moved, err := line.Move(t.Context(), to)
		if err != nil || moved != (to != start) {
			t.Fatalf("from %d to %d: moved is %v, %v", start, to, moved, err)
		}
		start = to
		same(to)
	}
	for range 60 {
		move(1 + random.Int64N(revision))
	}
	for at := revision; at > 0; at-- {
		move(at)
	}
	if n := len(line.index.roles) + len(line.index.within) + len(line.index.bindings[roleBindings]); n > 0 {
		t.Errorf("%d things are left at the beginning", n)
	}

	// Later changes are read when they are needed, and a change that was forgotten has no effect.
	w.store("kind: Role\nmetadata: {name: late, namespace: dev}\nrules: [{apiGroups: [''], resources: [pods], verbs: [list]}]")
	h.all = eventsOf(t, w.backend, revision+1)
	move(revision + 1)
	later, err := past.Timeline(t.Context(), h, revision)
	if err != nil {
		t.Fatal(err)
	}
	h.forgotten = revision + 1
	if moved, err := later.Move(t.Context(), revision+1); !moved || err != nil {
		t.Errorf("a forgotten change: %v, %v", moved, err)
	}
	h.oldest = 10
	if moved, err := later.Move(t.Context(), 10); !moved || err != nil || later.from != 10 {
		t.Errorf("a move to the oldest state: %v, %v, changes from %d", moved, err, later.from)
	}
	var compacted *kv.CompactedError
	if _, err := later.Move(t.Context(), 9); !errors.As(err, &compacted) {
		t.Errorf("a move to a state that is no longer kept: %v", err)
	}
}

// A historian has all events of a store.
type historian struct {
	kv.Historian
	all []kv.Event

	oldest, forgotten int64
}

func (h *historian) Log(_ context.Context, after, until int64) iter.Seq2[kv.Logged, error] {
	return func(yield func(kv.Logged, error) bool) {
		if after < h.oldest {
			yield(kv.Logged{}, &kv.CompactedError{Asked: after, Oldest: h.oldest})
			return
		}
		for _, e := range slices.Backward(h.all) {
			if e.Revision > after && e.Revision <= until && !yield(kv.Logged{Key: e.Key, Revision: e.Revision}, nil) {
				return
			}
		}
	}
}

func (h *historian) Change(_ context.Context, key string, revision int64) (kv.Past, error) {
	for _, e := range h.all {
		if e.Key == key && e.Revision == revision && revision != h.forgotten {
			return kv.Past{Event: e}, nil
		}
	}
	return kv.Past{}, kv.ErrNotFound
}

// eventsOf returns all events up to a revision.
func eventsOf(t *testing.T, b kv.Backend, until int64) (all []kv.Event) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for batch, err := range b.Watch(ctx, "", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, batch.Events...); batch.Revision >= until {
			break
		}
	}
	return all
}
