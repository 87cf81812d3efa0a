package rbac

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A world is a store with an authorizer.
type world struct {
	testing.TB
	*Authorizer
	backend kv.Backend
	cache   *watchcache.Cache
	set     *resource.Set
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, Authorizer: &Authorizer{}, backend: memkv.New(memkv.Options{}), set: resource.NewSet([]*resource.Definition{
		{Group: rbacv1.GroupName, Plural: "clusterroles", Kind: "ClusterRole", StoragePrefix: "/registry/clusterroles/"},
		{Group: rbacv1.GroupName, Plural: "roles", Kind: "Role", Namespaced: true, StoragePrefix: "/registry/roles/"},
		{Group: rbacv1.GroupName, Plural: "clusterrolebindings", Kind: "ClusterRoleBinding", StoragePrefix: "/registry/clusterrolebindings/"},
		{Group: rbacv1.GroupName, Plural: "rolebindings", Kind: "RoleBinding", Namespaced: true, StoragePrefix: "/registry/rolebindings/"},
	})}
	cache := watchcache.New(w.backend, watchcache.Options{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cache.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, kv.ErrClosed) {
			t.Error(err)
		}
	})
	w.cache = cache
	w.Read(cache, w.set)
	return w
}

// key returns the store key of an object.
func (w *world) key(o object.Tree) string {
	return w.set.Lookup(rbacv1.GroupName, strings.ToLower(o["kind"].(string))+"s").Key(object.Namespace(o), object.Name(o))
}

// store creates or replaces objects, each a YAML document.
func (w *world) store(documents string) {
	w.Helper()
	for document := range strings.SplitSeq(documents, "\n---\n") {
		var o object.Tree
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			w.Fatalf("%v in:\n%s", err, document)
		}
		data, err := json.Marshal(o)
		if err != nil {
			w.Fatal(err)
		}
		w.write(w.key(o), data)
	}
}

// remove deletes an object.
func (w *world) remove(kind, namespace, name string) {
	w.Helper()
	w.write(w.key(object.Tree{"kind": kind, "metadata": object.Tree{"namespace": namespace, "name": name}}), nil)
}

func (w *world) write(key string, value []byte) {
	w.Helper()
	current, err := w.backend.Get(w.Context(), key, kv.Latest)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		w.Fatal(err)
	}
	if _, err := w.backend.Commit(w.Context(), kv.Write{Key: key, Value: value, Expect: current.Revision}); err != nil {
		w.Fatal(err)
	}
}

// asked returns the attributes of an action: "VERB RESOURCE[.GROUP][/SUBRESOURCE]
// [NAMESPACE/][NAME]" or "VERB /PATH".
func asked(u *request.User, words string) *authz.Attributes {
	f := append(strings.Fields(words), "")
	a := &authz.Attributes{User: u, Info: request.Info{Verb: f[0]}}
	if strings.HasPrefix(f[1], "/") {
		a.Path = f[1]
		return a
	}
	a.IsResource = true
	a.Resource, a.Subresource, _ = strings.Cut(f[1], "/")
	a.Resource, a.Group, _ = strings.Cut(a.Resource, ".")
	a.Namespace, a.Name, _ = strings.Cut(f[2], "/")
	return a
}

// ask returns the answer to a user's action.
func (w *world) ask(u *request.User, words string) string {
	w.Helper()
	decision, reason, err := w.Authorize(w.Context(), asked(u, words))
	if err != nil {
		w.Errorf("%s: %v", words, err)
	}
	if decision == authz.Deny || decision == authz.Allow != strings.HasPrefix(reason, "RBAC: allowed by ") {
		w.Errorf("%s: %v, and %q", words, decision, reason)
	}
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(reason, "RBAC: "), "allowed by "), "no")
}

var (
	ann   = &request.User{Name: "ann", Groups: []string{"devs", request.Authenticated}}
	robot = &request.User{Name: "system:serviceaccount:n:robot", Groups: []string{"system:serviceaccounts"}}
	eve   = &request.User{Name: "eve"}
)

// Rules match groups, resources, names and paths.
func TestRules(t *testing.T) {
	w := newWorld(t)
	w.store(`
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {kind: ClusterRole, name: r}
subjects: [{kind: User, name: ann}]`)
	for _, tt := range []struct{ rule, yes, no string }{
		{"apiGroups: [''], resources: [pods], verbs: [get]",
			"get pods n/a; get pods", "list pods n; get pods.apps n/a; get pods/log n/a; get services n/a; get /pods"},
		{"apiGroups: ['*'], resources: ['*'], verbs: ['*']",
			"get pods n/a; escalate roles.rbac n; patch things.g/x/y n/a", "get /api"},
		{"apiGroups: [''], resources: [pods/log, '*/scale'], verbs: [get]",
			"get pods/log n/a; get pods/scale n/a; get things/scale n/a", "get pods n/a; get pods/exec n/a; get pods/log/x n/a"},
		{"apiGroups: [''], resources: ['pods/*'], verbs: [get]",
			"", "get pods/log n/a; get pods n/a"},
		{"apiGroups: [''], resources: [pods, pods, '*'], resourceNames: [a, b], verbs: [get, list]",
			"get pods n/a; list pods n/b; get services n/b; get pods/log n/b", "get pods n/c; list pods n"},
		{"nonResourceURLs: [/healthz, /logs/*, '/a**'], verbs: [get]",
			"get /healthz; get /logs/; get /logs/x/y; get /abc", "get /healthz/; get /logs; post /healthz; get healthz"},
		{"nonResourceURLs: ['*'], verbs: ['*']", "get /; delete /a/b", "get pods n/a"},
	} {
		w.store(fmt.Sprintf("kind: ClusterRole\nmetadata: {name: r}\nrules: [{%s}]", tt.rule))
		check := func(all, want string) {
			for words := range strings.SplitSeq(all, "; ") {
				if words == "" {
					continue
				}
				if got := w.ask(ann, words); got != want {
					t.Errorf("{%s}: %s: %s", tt.rule, words, got)
				}
			}
		}
		check(tt.yes, `ClusterRoleBinding "b" of ClusterRole "r" to User "ann"`)
		check(tt.no, "no")
	}
}

const staff = `
kind: ClusterRole
metadata: {name: reader}
rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]
---
kind: Role
metadata: {name: reader, namespace: 'n'}
rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]
---
kind: RoleBinding
metadata: {name: local, namespace: 'n'}
roleRef: {kind: ClusterRole, name: reader}
subjects: [{kind: ServiceAccount, name: robot}, {kind: Group, name: devs}, {kind: User, name: ann}]
---
kind: RoleBinding
metadata: {name: secret, namespace: 'n'}
roleRef: {kind: Role, name: reader}
subjects: [{kind: User, name: ann}, {kind: ServiceAccount, name: robot, namespace: 'n'}]
---
kind: ClusterRoleBinding
metadata: {name: lost}
roleRef: {kind: ClusterRole, name: gone}
subjects: [{kind: Group, name: devs}, {kind: User, name: ann}]
---
kind: RoleBinding
metadata: {name: odd, namespace: 'n'}
roleRef: {kind: Thing, name: gone}
subjects: [{kind: User, name: ann}, {kind: Thing, name: eve}]
---
kind: RoleBinding
metadata: {name: alsolost, namespace: 'n'}
roleRef: {kind: Role, name: gone}
subjects: [{kind: User, name: ann}]`

// Bindings grant roles to subjects, in a namespace or in the cluster.
func TestSubjects(t *testing.T) {
	w := newWorld(t)
	w.store(staff)
	const gone = `clusterrole.rbac.authorization.k8s.io "gone" not found`
	const all = `[` + gone + `, role.rbac.authorization.k8s.io "gone" not found, unsupported role reference kind: "Thing"]`
	for _, tt := range []struct {
		user        *request.User
		words, want string
	}{
		{ann, "get pods n/a", `RoleBinding "local/n" of ClusterRole "reader" to Group "devs"`},
		{ann, "get secrets n/a", `RoleBinding "secret/n" of Role "reader" to User "ann"`},
		{robot, "get pods n/a", `RoleBinding "local/n" of ClusterRole "reader" to ServiceAccount "robot/n"`},
		{robot, "get secrets n/a", `RoleBinding "secret/n" of Role "reader" to ServiceAccount "robot/n"`},
		{robot, "get secrets m/a", "no"},
		{ann, "get pods m/a", gone},
		{ann, "get pods", gone},
		{ann, "list pods n", all},
		{ann, "get /api", gone},
		{eve, "get pods n/a", "no"},
	} {
		if got := w.ask(tt.user, tt.words); got != tt.want {
			t.Errorf("%s: %s: %s, want %s", tt.user.Name, tt.words, got, tt.want)
		}
	}
}

// Every later check sees a change.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	step := func(user *request.User, words, want string) {
		t.Helper()
		if got := w.ask(user, words); got != want {
			t.Errorf("%s: %s: %s, want %s", user.Name, words, got, want)
		}
	}
	step(ann, "get pods n/a", "no")
	w.store(staff)
	step(ann, "get pods n/a", `RoleBinding "local/n" of ClusterRole "reader" to Group "devs"`)
	w.store("kind: ClusterRole\nmetadata: {name: reader}\nrules: []")
	step(robot, "get pods n/a", "no")
	w.remove("ClusterRole", "", "reader")
	step(robot, "get pods n/a", `clusterrole.rbac.authorization.k8s.io "reader" not found`)
	w.remove("RoleBinding", "n", "local")
	step(robot, "get pods n/a", "no")
	step(robot, "get secrets n/a", `RoleBinding "secret/n" of Role "reader" to ServiceAccount "robot/n"`)
	w.store(`
kind: RoleBinding
metadata: {name: secret, namespace: 'n'}
roleRef: {kind: Role, name: reader}
subjects: [{kind: User, name: eve}]`)
	step(robot, "get secrets n/a", "no")
	step(eve, "get secrets n/a", `RoleBinding "secret/n" of Role "reader" to User "eve"`)
	w.remove("Role", "n", "reader")
	step(eve, "get secrets n/a", `role.rbac.authorization.k8s.io "reader" not found`)
	w.cache.Forget("/registry/rolebindings/") // as after an overflow of events
	w.remove("RoleBinding", "n", "secret")
	step(eve, "get secrets n/a", "no")
	for _, kind := range []string{"alsolost", "odd"} {
		w.remove("RoleBinding", "n", kind)
	}
	w.remove("ClusterRoleBinding", "", "lost")
	step(ann, "get pods n/a", "no")
	if x := &w.index; len(x.roles)+len(x.within)+len(x.cluster.users)+len(x.cluster.groups) > 0 {
		t.Errorf("something is left of what was deleted: %+v", x)
	}
}

// A user with many grants has the same rights as with few.
func TestManyGrants(t *testing.T) {
	w := newWorld(t)
	bind := func(i int, role string) {
		w.store(fmt.Sprintf("kind: ClusterRoleBinding\nmetadata: {name: b%02d}\nroleRef: {kind: ClusterRole, name: %s}\nsubjects: [{kind: Group, name: devs}]", i, role))
	}
	for i := range 3 * fewGrants {
		role := fmt.Sprint("r", i/2) // each role twice
		bind(i, role)
		w.store(fmt.Sprintf("kind: ClusterRole\nmetadata: {name: %s}\nrules: [{apiGroups: [''], resources: [things], resourceNames: [n%d], verbs: [get]}, {nonResourceURLs: [/%d], verbs: [get]}]", role, i/2, i/2))
	}
	for words, want := range map[string]string{
		"get things n/n3": `ClusterRoleBinding "b06" of ClusterRole "r3" to Group "devs"`,
		"get things n/n":  "no",
		"get things":      "no",
		"get /5":          `ClusterRoleBinding "b10" of ClusterRole "r5" to Group "devs"`,
		"get /":           "no",
	} {
		if got := w.ask(ann, words); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
	w.store("kind: ClusterRole\nmetadata: {name: r7}\nrules: [{apiGroups: [''], resources: ['*'], verbs: ['*']}]")
	bind(2, "gone")
	for words, want := range map[string]string{
		"get things n/n":  `ClusterRoleBinding "b14" of ClusterRole "r7" to Group "devs"`,
		"get things n/n3": `ClusterRoleBinding "b06" of ClusterRole "r3" to Group "devs"`,
		"get /":           `clusterrole.rbac.authorization.k8s.io "gone" not found`,
	} {
		if got := w.ask(ann, words); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}

// The rules of a user come from the bindings, each once, with the errors of unreadable ones.
func TestRulesFor(t *testing.T) {
	w := newWorld(t)
	w.store(staff)
	rules, err := w.RulesFor(t.Context(), ann, "n")
	var about []string
	for _, r := range rules {
		about = append(about, r.Resources...)
	}
	if want := []string{"pods", "secrets"}; !slices.Equal(about, want) {
		t.Errorf("rules are about %v, want %v", about, want)
	}
	const want = `[clusterrole.rbac.authorization.k8s.io "gone" not found, role.rbac.authorization.k8s.io "gone" not found, unsupported role reference kind: "Thing"]`
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for ref, want := range map[rbacv1.RoleRef]string{
		{Kind: "ClusterRole", Name: "reader"}: "[pods]",
		{Kind: "Role", Name: "reader"}:        "[secrets]",
		{Kind: "Role", Name: "gone"}:          `role.rbac.authorization.k8s.io "gone" not found`,
		{Kind: "Thing", Name: "gone"}:         `unsupported role reference kind: "Thing"`,
	} {
		rules, err := w.RulesOf(t.Context(), ref, "n")
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(rules[0].Resources)
		}
		if got != want {
			t.Errorf("%+v: %s, want %s", ref, got, want)
		}
	}
}

// Unreadable roles and bindings grant nothing, and other grants stay.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	w.store(staff)
	w.write("/registry/rolebindings/n/secret", []byte(`{"metadata":{"name":"secret","namespace":"n"},"subjects":"all"}`))
	w.write("/registry/clusterroles/reader", []byte(`{"metadata":{"name":"reader"},"rules":{}}`))
	w.write("/registry/clusterroles/other", []byte(`?`))
	if got := w.ask(robot, "get secrets n/a"); !strings.HasPrefix(got, `the stored clusterrole.rbac.authorization.k8s.io "reader" cannot be read: json: `) {
		t.Error(got)
	}
}

// A failing store leaves a request undecided, unless it is for a non-resource path.
func TestStoreFails(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if decision, reason, err := w.Authorize(ctx, asked(ann, "get pods")); decision != authz.NoOpinion || reason != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%v %q %v", decision, reason, err)
	}
	w.store(`
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {kind: ClusterRole, name: r}
subjects: [{kind: User, name: ann}]
---
kind: ClusterRole
metadata: {name: r}
rules: [{nonResourceURLs: [/livez], verbs: [get]}]`)
	const want = `ClusterRoleBinding "b" of ClusterRole "r" to User "ann"`
	if got := w.ask(ann, "get /livez"); got != want {
		t.Error(got)
	}
	if decision, _, err := w.Authorize(t.Context(), asked(nil, "get pods")); decision != authz.NoOpinion || err != nil {
		t.Errorf("without a user: %v %v", decision, err)
	}
	if err := w.backend.Close(); err != nil {
		t.Fatal(err)
	}
	if got := w.ask(ann, "get /livez"); got != want {
		t.Errorf("how the server is, when the store is gone: %s", got)
	}
	if _, _, err := w.Authorize(t.Context(), asked(ann, "get pods")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("when the store is gone: %v", err)
	}
}

// A request reads the revision of the store once: later checks, and one read, reuse it.
func TestSeen(t *testing.T) {
	w := newWorld(t)
	q := &request.Request{}
	ctx := request.With(t.Context(), q)
	if _, _, err := w.Authorize(ctx, asked(ann, "get pods")); err != nil {
		t.Fatal(err)
	}
	if err := w.backend.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Authorize(ctx, asked(ann, "create pods")); err != nil {
		t.Errorf("the store was asked again: %v", err)
	}
	if revision, ok := q.TakeSeen(); !ok || revision != 1 {
		t.Errorf("seen %d %v", revision, ok)
	}
	if _, ok := q.TakeSeen(); ok {
		t.Error("seen again")
	}
	if _, _, err := w.Authorize(ctx, asked(ann, "create pods")); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("after the read: %v", err)
	}
}
