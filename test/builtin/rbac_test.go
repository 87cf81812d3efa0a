package builtin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	upstream "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/access/authz/rbac/defaults"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// defaultObjects returns the default roles and bindings of Kubernetes, by resource, namespace and
// name.
func defaultObjects() map[string]any {
	all := map[string]any{}
	for _, r := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		all["clusterroles//"+r.Name] = r
	}
	for _, b := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		all["clusterrolebindings//"+b.Name] = b
	}
	for namespace, roles := range bootstrappolicy.NamespaceRoles() {
		for _, r := range roles {
			all["roles/"+namespace+"/"+r.Name] = r
		}
	}
	for namespace, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range bindings {
			all["rolebindings/"+namespace+"/"+b.Name] = b
		}
	}
	return all
}

// The default roles and bindings equal those of Kubernetes, object by object, with the defaults of feature gates and
// with other values.
func TestDefaultRoles(t *testing.T) {
	t.Run("defaults", func(t *testing.T) { compareRoles(t, nil) })
	for _, text := range []string{
		"DRADeviceTaintRules=false",
		"DRADeviceTaintRules=false,DRADeviceTaints=false",
		"DRAResourceClaimGranularStatusAuthorization=false",
		"DRAResourcePoolStatus=true",
		"CSIVolumeHealth=true",
		"GenericWorkload=true",
		"GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true",
		"GenericWorkload=true,WorkloadWithJob=true,DRAWorkloadResourceClaims=true",
		"EvictionRequestAPI=true",
		"ComponentFlagz=false",
		"ClusterTrustBundle=false,ClusterTrustBundleProjection=false",
		"StorageVersionAPI=true",
		"PodCertificateRequest=false,StorageVersionMigrator=false",
		"ComponentFlagz=false,ComponentStatusz=false,KubeletServiceAccountTokenForCredentialProviders=false",
	} {
		t.Run(text, func(t *testing.T) { compareRoles(t, withGates(t, text)) })
	}
}

func compareRoles(t *testing.T, gates *gate.Set) {
	t.Helper()
	theirs := defaultObjects()
	for _, o := range defaults.Objects(gates) {
		data, err := json.Marshal(o.Tree)
		if err != nil {
			t.Fatal(err)
		}
		metadata := o.Tree["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		id := o.Resource + "/" + namespace + "/" + metadata["name"].(string)
		want := theirs[id]
		delete(theirs, id)
		var got any
		switch w := want.(type) {
		case rbacv1.ClusterRole:
			got, err = typed(data, &w)
			want = w
		case rbacv1.Role:
			got, err = typed(data, &w)
			want = w
		case rbacv1.ClusterRoleBinding:
			got, err = typed(data, &w)
			want = w
		case rbacv1.RoleBinding:
			got, err = typed(data, &w)
			want = w
		default:
			t.Errorf("Kubernetes has no %s", id)
			continue
		}
		if err != nil || !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: %v\n ours %+v\ntheirs %+v", id, err, got, want)
		}
	}
	for id := range theirs {
		t.Errorf("there is no %s", id)
	}
}

// typed decodes JSON, and clears apiVersion and kind in both values.
func typed[T any](data []byte, want *T) (T, error) {
	var got T
	err := json.Unmarshal(data, &got)
	for _, o := range []any{&got, want} {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			o.APIVersion, o.Kind = "", ""
		case *rbacv1.Role:
			o.APIVersion, o.Kind = "", ""
		case *rbacv1.ClusterRoleBinding:
			o.APIVersion, o.Kind = "", ""
		case *rbacv1.RoleBinding:
			o.APIVersion, o.Kind = "", ""
		}
	}
	return got, err
}

// A cast is a set of roles and bindings, as upstream's authorizer reads it: sorted by name, and with
// the errors of its listers.
type cast struct {
	clusterRoles        map[string]*rbacv1.ClusterRole
	roles               map[string]*rbacv1.Role // by namespace/name
	clusterRoleBindings []*rbacv1.ClusterRoleBinding
	roleBindings        map[string][]*rbacv1.RoleBinding // by namespace
}

func (c *cast) GetRole(_ context.Context, namespace, name string) (*rbacv1.Role, error) {
	if r := c.roles[namespace+"/"+name]; r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("role"), name)
}

func (c *cast) GetClusterRole(_ context.Context, name string) (*rbacv1.ClusterRole, error) {
	if r := c.clusterRoles[name]; r != nil {
		return r, nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("clusterrole"), name)
}

func (c *cast) ListRoleBindings(_ context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	return c.roleBindings[namespace], nil
}

func (c *cast) ListClusterRoleBindings(context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return c.clusterRoleBindings, nil
}

// A dice generates random values from few words, so that they often match.
type dice struct{ *rand.Rand }

func (d dice) of(words ...string) string { return words[d.IntN(len(words))] }

func (d dice) some(words ...string) (out []string) {
	for range 1 + d.IntN(3) {
		out = append(out, d.of(words...))
	}
	return out
}

var (
	verbWords     = []string{"get", "list", "watch", "create", "delete", "*", "proxy", ""}
	groupWords    = []string{"", "apps", "example.com", "*"}
	resourceWords = []string{"pods", "deployments", "things", "pods/log", "deployments/scale", "*/scale", "*/log", "pods/*", "*", "*/*", "/", "pods/", "*/"}
	nameWords     = []string{"a", "b", "c", "", "*"}
	pathWords     = []string{"/healthz", "/healthz/*", "/logs/*", "/api", "*", "/a**", "/", "/*", "", "**"}
	asks          = []string{"/healthz", "/healthz/x", "/logs", "/logs/x", "/api", "/", "", "/ab", "*"}
	spaces        = []string{"", "dev", "ops"}
)

func (d dice) rules() (rules []rbacv1.PolicyRule) {
	for range d.IntN(4) {
		r := rbacv1.PolicyRule{Verbs: d.some(verbWords...)}
		if d.IntN(3) == 0 {
			r.NonResourceURLs = d.some(pathWords...)
		} else {
			r.APIGroups, r.Resources = d.some(groupWords...), d.some(resourceWords...)
		}
		if d.IntN(3) == 0 {
			r.ResourceNames = d.some(nameWords...)
		}
		rules = append(rules, r)
	}
	return rules
}

func (d dice) subjects() (subjects []rbacv1.Subject) {
	for range d.IntN(4) {
		s := rbacv1.Subject{Kind: d.of("User", "Group", "ServiceAccount", "Thing")}
		switch s.Kind {
		case "ServiceAccount":
			s.Name, s.Namespace = d.of("robot", "other", ""), d.of(spaces...)
		case "Group":
			s.Name = d.of("devs", "admins", "guests", "system:authenticated")
		default:
			s.Name = d.of("ann", "eve", "system:serviceaccount:dev:robot", "")
		}
		subjects = append(subjects, s)
	}
	return subjects
}

func (d dice) ref() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: d.of("ClusterRole", "ClusterRole", "Role", "Thing"), Name: d.of("r0", "r1", "r2", "r3", "gone")}
}

func (d dice) user() *user.DefaultInfo {
	u := &user.DefaultInfo{Name: d.of("ann", "eve", "", "system:serviceaccount:dev:robot", "system:serviceaccount:ops:robot", "system:serviceaccount::robot")}
	for range d.IntN(3) {
		u.Groups = append(u.Groups, d.of("devs", "admins", "system:authenticated"))
	}
	return u
}

func (d dice) attributes() authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{User: d.user(), Verb: d.of(verbWords...), Namespace: d.of(spaces...), ResourceRequest: d.IntN(4) > 0}
	if !a.ResourceRequest {
		a.Path = d.of(asks...)
		return a
	}
	a.APIGroup, a.Resource, a.Name = d.of(groupWords...), d.of("pods", "deployments", "things", "*", "pods/log", "", "other"), d.of(nameWords...)
	a.Subresource = d.of("", "", "log", "scale", "status", "*")
	return a
}

// cast generates roles and bindings, and stores them.
func (d dice) cast(t *testing.T, backend kv.Backend, set *resource.Set) *cast {
	c := &cast{clusterRoles: map[string]*rbacv1.ClusterRole{}, roles: map[string]*rbacv1.Role{}, roleBindings: map[string][]*rbacv1.RoleBinding{}}
	put := func(plural, namespace, name string, o any) {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		key := set.Lookup(rbacv1.GroupName, plural).Key(namespace, name)
		if _, err := backend.Commit(t.Context(), kv.Write{Key: key, Value: data}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 4 {
		r := &rbacv1.ClusterRole{Rules: d.rules()}
		r.Name = fmt.Sprint("r", i)
		c.clusterRoles[r.Name] = r
		put("clusterroles", "", r.Name, r)
		for _, namespace := range spaces[1:] {
			r := &rbacv1.Role{Rules: d.rules()}
			r.Namespace, r.Name = namespace, fmt.Sprint("r", i)
			c.roles[namespace+"/"+r.Name] = r
			put("roles", namespace, r.Name, r)
		}
	}
	for i := range d.IntN(24) { // more than the authorizer checks one by one
		b := &rbacv1.ClusterRoleBinding{RoleRef: d.ref(), Subjects: d.subjects()}
		if b.RoleRef.Kind == "Role" {
			b.RoleRef.Kind = "ClusterRole" // validation requires it
		}
		b.Name = fmt.Sprint("b", i)
		c.clusterRoleBindings = append(c.clusterRoleBindings, b)
		put("clusterrolebindings", "", b.Name, b)
	}
	for i := range d.IntN(24) {
		b := &rbacv1.RoleBinding{RoleRef: d.ref(), Subjects: d.subjects()}
		b.Namespace, b.Name = d.of(spaces[1:]...), fmt.Sprint("b", i)
		c.roleBindings[b.Namespace] = append(c.roleBindings[b.Namespace], b)
		put("rolebindings", b.Namespace, b.Name, b)
	}
	slices.SortFunc(c.clusterRoleBindings, func(a, b *rbacv1.ClusterRoleBinding) int { return cmp.Compare(a.Name, b.Name) })
	for _, bindings := range c.roleBindings {
		slices.SortFunc(bindings, func(a, b *rbacv1.RoleBinding) int { return cmp.Compare(a.Name, b.Name) })
	}
	return c
}

// ours returns our authorizer over a store.
func ours(t testing.TB, backend kv.Backend, set *resource.Set) *rbac.Authorizer {
	z := &rbac.Authorizer{}
	z.Read(runCache(t, backend), set)
	return z
}

var decisions = map[authz.Decision]authorizer.Decision{
	authz.Allow: authorizer.DecisionAllow, authz.Deny: authorizer.DecisionDeny, authz.NoOpinion: authorizer.DecisionNoOpinion,
}

// Random identities, verbs, paths and roles get the decisions and reasons of upstream's authorizer.
// The rules of a user are the same, too.
func TestAuthorizer(t *testing.T) {
	const casts, questions = 200, 1000
	set := resource.NewSet(builtin.Definitions())
	d := dice{rand.New(rand.NewPCG(18, 18))}
	allowed, because := 0, 0
	for range casts {
		t.Run("", func(t *testing.T) {
			backend := memkv.New(memkv.Options{})
			c := d.cast(t, backend, set)
			theirs, ours := upstream.New(c, c, c, c), ours(t, backend, set)
			for range questions {
				a := d.attributes()
				u := &request.User{Name: a.User.GetName(), Groups: a.User.GetGroups()}
				decision, reason, err := ours.Authorize(t.Context(), &authz.Attributes{User: u, Info: request.Info{
					IsResource: a.ResourceRequest, Verb: a.Verb, Path: a.Path, Group: a.APIGroup, Namespace: a.Namespace,
					Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
				}})
				want, why, wantErr := theirs.Authorize(t.Context(), a)
				if decisions[decision] != want || reason != why || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%+v of %+v:\n ours %v %q %v\ntheirs %v %q %v", a, a.User, decision, reason, err, want, why, wantErr)
				}
				if want == authorizer.DecisionAllow {
					allowed++
				} else if why != "" {
					because++
				}
			}
			compareRules(t, d, ours, theirs)
		})
		if t.Failed() {
			return
		}
	}
	if total := casts * questions; allowed < total/20 || because < total/10 || total-allowed-because < total/10 {
		t.Errorf("of %d cases %d were allowed and %d refused with a reason: too few of one kind", total, allowed, because)
	}
}

// compareRules compares the rules of users.
func compareRules(t *testing.T, d dice, ours *rbac.Authorizer, theirs *upstream.RBACAuthorizer) {
	for range 20 {
		u, namespace := d.user(), d.of(spaces...)
		rules, err := ours.RulesFor(t.Context(), &request.User{Name: u.Name, Groups: u.Groups}, namespace)
		resources, paths, _, wantErr := theirs.RulesFor(t.Context(), u, namespace)
		var got, want []string
		for _, r := range rules {
			if len(r.Resources) > 0 {
				got = append(got, fmt.Sprintf("%q %q %q %q", r.Verbs, r.APIGroups, r.Resources, r.ResourceNames))
			}
		}
		for _, r := range rules {
			if len(r.NonResourceURLs) > 0 {
				got = append(got, fmt.Sprintf("%q %q", r.Verbs, r.NonResourceURLs))
			}
		}
		for _, r := range resources {
			want = append(want, fmt.Sprintf("%q %q %q %q", r.GetVerbs(), r.GetAPIGroups(), r.GetResources(), r.GetResourceNames()))
		}
		for _, r := range paths {
			want = append(want, fmt.Sprintf("%q %q", r.GetVerbs(), r.GetNonResourceURLs()))
		}
		if !slices.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("rules of %+v in %q:\n ours %s, %v\ntheirs %s, %v", u, namespace, strings.Join(got, "\n"), err, strings.Join(want, "\n"), wantErr)
		}
	}
}

// BenchmarkAuthorize measures a check among 10,000 bindings, ours and upstream's.
func BenchmarkAuthorize(b *testing.B) {
	c := &cast{clusterRoles: map[string]*rbacv1.ClusterRole{}, roleBindings: map[string][]*rbacv1.RoleBinding{}}
	set, backend := resource.NewSet(builtin.Definitions()), memkv.New(memkv.Options{})
	put := func(plural, namespace, name string, o any) {
		data, err := json.Marshal(o)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := backend.Commit(b.Context(), kv.Write{Key: set.Lookup(rbacv1.GroupName, plural).Key(namespace, name), Value: data}); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 100 {
		r := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods", "pods/log", "services", "configmaps"}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Verbs: []string{"get", "list", "watch", "update"}},
		}}
		r.Name = fmt.Sprint("r", i)
		c.clusterRoles[r.Name] = r
		put("clusterroles", "", r.Name, r)
	}
	for i := range 10_000 {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprint("r", i%100)}
		subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: fmt.Sprint("user", i)}}
		if i%2 == 0 {
			o := &rbacv1.ClusterRoleBinding{RoleRef: ref, Subjects: subjects}
			o.Name = fmt.Sprint("b", i)
			c.clusterRoleBindings = append(c.clusterRoleBindings, o)
			put("clusterrolebindings", "", o.Name, o)
			continue
		}
		o := &rbacv1.RoleBinding{RoleRef: ref, Subjects: subjects}
		o.Name, o.Namespace = fmt.Sprint("b", i), fmt.Sprint("n", i%50)
		c.roleBindings[o.Namespace] = append(c.roleBindings[o.Namespace], o)
		put("rolebindings", o.Namespace, o.Name, o)
	}
	groups := []string{"devs", "system:authenticated"}
	a := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "user9001", Groups: groups}, Verb: "get", Resource: "pods", Namespace: "n1", Name: "p", ResourceRequest: true,
	}
	b.Run("upstream", func(b *testing.B) {
		theirs := upstream.New(c, c, c, c)
		for b.Loop() {
			if decision, _, _ := theirs.Authorize(b.Context(), a); decision != authorizer.DecisionAllow {
				b.Fatal(decision)
			}
		}
	})
	b.Run("ours", func(b *testing.B) {
		ours := ours(b, backend, set)
		asked := &authz.Attributes{User: &request.User{Name: "user9001", Groups: groups}, Info: request.Info{
			IsResource: true, Verb: "get", Resource: "pods", Namespace: "n1", Name: "p",
		}}
		for b.Loop() {
			if decision, _, err := ours.Authorize(b.Context(), asked); decision != authz.Allow {
				b.Fatal(decision, err)
			}
		}
	})
}
