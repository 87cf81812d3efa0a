package rbac

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/store/kv"
)

// Going back change by change, a Rewind decides as the State of each revision does.
func TestRewind(t *testing.T) {
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
	past := NewPast(w.backend, w.set)
	r, err := past.Rewind(t.Context(), revision)
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
				decision, reason, _ := r.Authorize(t.Context(), asked(u, words))
				if right, because, _ := want.Authorize(t.Context(), asked(u, words)); decision != right || reason != because {
					t.Fatalf("at %d: %s %s: %v %q, want %v %q", at, u.Name, words, decision, reason, right, because)
				}
			}
		}
	}
	events := eventsOf(t, w.backend, revision)
	for i := len(events) - 1; i >= 0; i-- {
		same(events[i].Revision)
		if !r.Decides(events[i].Key) || r.Decides("/registry/roles-of-others/a") {
			t.Fatalf("the kind of %s is not known", events[i].Key)
		}
		r.Undo(&events[i])
	}
	same(1)
	if n := len(r.index.roles) + len(r.index.within) + len(r.index.bindings[roleBindings]); n > 0 {
		t.Errorf("%d things are left at the beginning", n)
	}
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
