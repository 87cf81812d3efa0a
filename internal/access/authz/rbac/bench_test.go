package rbac

import (
	"fmt"
	"testing"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// crowd has 10,000 bindings of users and groups to a hundred roles: in the cluster and in a hundred
// namespaces.
func crowd(b *testing.B) *world {
	w := newWorld(b)
	for i := range 100 {
		w.store(fmt.Sprintf(`
kind: ClusterRole
metadata: {name: role%d}
rules:
- {apiGroups: [''], resources: [pods, pods/log, services, configmaps, secrets, endpoints], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [deployments, deployments/scale, replicasets, statefulsets, daemonsets], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: [group%d.example.com], resources: ['*'], verbs: ['*']}
- {nonResourceURLs: [/metrics, '/logs/*'], verbs: [get]}`, i, i))
	}
	for i := range 10_000 {
		where, subject := "kind: ClusterRoleBinding\nmetadata: {name: b%d}", "{kind: User, name: user%d}"
		if i%2 == 0 {
			where = "kind: RoleBinding\nmetadata: {name: b%d, namespace: " + fmt.Sprint("n", i%100) + "}"
		}
		if i%3 == 0 {
			subject = "{kind: Group, name: group%d}"
		}
		w.store(fmt.Sprintf(where+"\nroleRef: {kind: ClusterRole, name: role%d}\nsubjects: ["+subject+", {kind: Group, name: all%d}]", i, i%100, i, i%4))
	}
	return w
}

func BenchmarkAuthorize(b *testing.B) {
	w := crowd(b)
	groups := []string{"group3", "group6", request.Authenticated}
	for _, bb := range []struct {
		name, words string
		user        *request.User
		want        authz.Decision
	}{
		{"allowed in the cluster", "get pods n1/a", &request.User{Name: "user1", Groups: groups}, authz.Allow},
		{"allowed in the namespace", "update deployments.apps/scale n4/a", &request.User{Name: "user4", Groups: groups}, authz.Allow},
		{"refused", "delete pods n4/a", &request.User{Name: "user4", Groups: groups}, authz.NoOpinion},
		{"unknown", "get pods n4/a", &request.User{Name: "guest", Groups: []string{request.Authenticated}}, authz.NoOpinion},
		{"allowed by one of 2,500", "get things.group37.example.com n1/a", &request.User{Name: "guest", Groups: []string{"all1"}}, authz.Allow},
		{"refused by all of 2,500", "delete pods n1/a", &request.User{Name: "guest", Groups: []string{"all1"}}, authz.NoOpinion},
		{"path", "get /metrics", &request.User{Name: "user1", Groups: groups}, authz.Allow},
	} {
		b.Run(bb.name, func(b *testing.B) {
			a := asked(bb.user, bb.words)
			if decision, reason, err := w.Authorize(b.Context(), a); decision != bb.want || err != nil {
				b.Fatal(decision, reason, err)
			}
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				_, _, _ = w.Authorize(ctx, a)
			}
		})
	}
}

// BenchmarkFirst measures the first check. It reads all bindings.
func BenchmarkFirst(b *testing.B) {
	w := crowd(b)
	if err := w.stored.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	a := asked(ann, "get pods n1/a")
	for b.Loop() {
		first := &Authorizer{}
		first.Read(w.cache, w.set)
		if _, _, err := first.Authorize(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkChange measures the first check after a change of a binding.
func BenchmarkChange(b *testing.B) {
	w := crowd(b)
	a := asked(ann, "get pods n1/a")
	for i := 0; b.Loop(); i++ {
		w.write("/registry/clusterrolebindings/changing", fmt.Appendf(nil, `{"metadata":{"name":"changing"},"roleRef":{"kind":"ClusterRole","name":"role1"},"subjects":[{"kind":"User","name":"ann"},{"kind":"Group","name":"x%d"}]}`, i))
		if decision, _, err := w.Authorize(b.Context(), a); decision != authz.Allow || err != nil {
			b.Fatal(decision, err)
		}
	}
}
