package rbac_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/access/authz"
	authzrbac "github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/builtin/rbac"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A world is a registry of roles and bindings for ann, eve and a cluster administrator.
type world struct {
	*testing.T
	set      *resource.Set
	registry *registry.Registry
}

const staff = `
{kind: ClusterRole, metadata: {name: reader}, rules: [{apiGroups: [''], resources: [pods], verbs: [get, list]}]}
{kind: ClusterRole, metadata: {name: writer}, rules: [{apiGroups: [''], resources: [pods, pods/log], verbs: [get, update]}, {apiGroups: [''], resources: [pods], resourceNames: [a], verbs: [delete]}, {nonResourceURLs: [/logs], verbs: [get]}]}
{kind: ClusterRole, metadata: {name: all}, rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}, {nonResourceURLs: ['*'], verbs: ['*']}]}
{kind: ClusterRole, metadata: {name: granter}, rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}, {apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [writer], verbs: [bind]}]}
{kind: RoleBinding, metadata: {name: ann, namespace: dev}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: reader}, subjects: [{kind: User, name: ann}]}
{kind: RoleBinding, metadata: {name: lost, namespace: ops}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: gone}, subjects: [{kind: Group, name: devs}]}
{kind: RoleBinding, metadata: {name: eve, namespace: dev}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: granter}, subjects: [{kind: User, name: eve}]}
{kind: ClusterRoleBinding, metadata: {name: boss}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: all}, subjects: [{kind: User, name: boss}]}`

func newWorld(t *testing.T) *world {
	backend := memkv.New(memkv.Options{})
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cache.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	has := &authzrbac.Authorizer{}
	w := &world{
		T: t, registry: registry.New(backend, cache, registry.Options{}),
		set: resource.NewSet(rbac.Definitions(authz.Union{{Name: "rbac", Authorizer: has}}, has)),
	}
	has.Read(cache, w.set)
	for line := range strings.SplitSeq(strings.TrimSpace(staff), "\n") {
		if err := w.write(nil, line); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// write creates or updates an object from YAML as a user.
func (w *world) write(u *request.User, document string) error {
	var t object.Tree
	if err := yaml.Unmarshal([]byte(document), &t); err != nil {
		w.Fatal(err)
	}
	d := w.set.Lookup(rbacv1.GroupName, strings.ToLower(t["kind"].(string))+"s")
	target := registry.StorageTarget(d, object.Namespace(t), object.Name(t))
	t["apiVersion"] = d.APIVersion(target.Version.Name)
	sent := object.CloneTree(t)
	t, _, err := target.Version.Schema.Complete(t)
	if err != nil {
		w.Fatal(err)
	}
	ctx := w.Context()
	if u != nil {
		ctx = request.With(ctx, &request.Request{User: u, Info: request.Info{
			IsResource: true, Group: d.Group, Resource: d.Plural, Namespace: target.Namespace, Name: target.Name,
		}})
	}
	_, err = w.registry.Modify(ctx, target, func(old object.Tree) (object.Tree, error) {
		n := object.CloneTree(t)
		if old != nil { // as a patch of the object
			n = object.CloneTree(old)
			for field, value := range sent {
				if field != "metadata" {
					n[field] = value
				}
			}
			for field, value := range object.Metadata(sent) {
				object.Metadata(n)[field] = value
			}
		}
		return n, nil
	}, registry.WriteOptions{})
	return err
}

// Users can only grant permissions that they have, without escalate or bind. The messages are those
// of kube-apiserver.
func TestEscalation(t *testing.T) {
	ann := &request.User{Name: "ann", Groups: []string{"devs", "system:authenticated"}}
	eve, boss := &request.User{Name: "eve"}, &request.User{Name: "boss"}
	master := &request.User{Name: "root", Groups: []string{request.Masters}}
	const ref = "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %s}, subjects: [{kind: User, name: mallory}]"
	const grants = ` is attempting to grant RBAC permissions not currently held:` + "\n"
	const ofAnn, ofEve = `user "ann" (groups=["devs" "system:authenticated"])` + grants, `user "eve" (groups=[])` + grants
	const group = `.rbac.authorization.k8s.io`
	const writes = `{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["delete"]}` + "\n"
	for _, tt := range []struct {
		name     string
		user     *request.User
		document string
		want     string
	}{
		{"a role with less", ann, `{kind: Role, metadata: {name: x, namespace: dev}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: [''], resources: [pods], resourceNames: [a], verbs: [list]}]}`, ""},
		{"a role with more", ann, `{kind: Role, metadata: {name: x, namespace: dev}, rules: [{apiGroups: ['', apps], resources: [pods, pods/log], verbs: [get, watch]}, {apiGroups: [''], resources: [pods], verbs: [delete]}]}`,
			`roles` + group + ` "x" is forbidden: ` + ofAnn + `{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}` + "\n" +
				`{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "watch"]}` + "\n" +
				`{APIGroups:["apps"], Resources:["pods"], Verbs:["get" "watch"]}` + "\n" + `{APIGroups:["apps"], Resources:["pods/log"], Verbs:["get" "watch"]}`},
		{"elsewhere", ann, `{kind: Role, metadata: {name: x, namespace: ops}, rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}`,
			`roles` + group + ` "x" is forbidden: ` + ofAnn + `{APIGroups:[""], Resources:["pods"], Verbs:["get"]}; resolution errors: [roles` + group + ` "gone" not found]`},
		{"who may escalate", eve, `{kind: Role, metadata: {name: x, namespace: dev}, rules: [{apiGroups: [''], resources: [pods], verbs: ['*']}]}`, ""},
		{"who may escalate something else", eve, `{kind: ClusterRole, metadata: {name: x}, rules: [{nonResourceURLs: [/a], verbs: [get]}]}`,
			`clusterroles` + group + ` "x" is forbidden: ` + ofEve + `{NonResourceURLs:["/a"], Verbs:["get"]}`},
		{"a role that takes rules", ann, `{kind: ClusterRole, metadata: {name: x}, rules: [], aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}`,
			`clusterroles` + group + ` "x" is forbidden: must have cluster-admin privileges to use the aggregationRule`},
		{"who has all", boss, `{kind: ClusterRole, metadata: {name: x}, rules: [], aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: b}}]}}`, ""},
		{"a role that is there", ann, `{kind: ClusterRole, metadata: {name: writer, labels: {a: b}}}`,
			`clusterroles` + group + ` "writer" is forbidden: ` + ofAnn + writes +
				`{APIGroups:[""], Resources:["pods"], Verbs:["get" "update"]}` + "\n" + `{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "update"]}` + "\n" + `{NonResourceURLs:["/logs"], Verbs:["get"]}`},
		{"only its finalizers", ann, `{kind: ClusterRole, metadata: {name: writer, finalizers: [a.example.com/b]}}`, ""},

		{"a binding to what one has", ann, `{kind: RoleBinding, metadata: {name: x, namespace: dev}, ` + fmt.Sprintf(ref, "reader") + `}`, ""},
		{"a binding to more", ann, `{kind: RoleBinding, metadata: {name: x, namespace: dev}, ` + fmt.Sprintf(ref, "writer") + `}`,
			`rolebindings` + group + ` "x" is forbidden: ` + ofAnn + writes + `{APIGroups:[""], Resources:["pods"], Verbs:["update"]}` + "\n" +
				`{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "update"]}` + "\n" + `{NonResourceURLs:["/logs"], Verbs:["get"]}`},
		{"in the whole cluster", ann, `{kind: ClusterRoleBinding, metadata: {name: x}, ` + fmt.Sprintf(ref, "reader") + `}`,
			`clusterrolebindings` + group + ` "x" is forbidden: ` + ofAnn + `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`},
		{"to a role that is not there", ann, `{kind: RoleBinding, metadata: {name: x, namespace: dev}, ` + fmt.Sprintf(ref, "none") + `}`, `rolebindings` + group + ` "none" not found`},
		{"who may bind", eve, `{kind: RoleBinding, metadata: {name: x, namespace: dev}, ` + fmt.Sprintf(ref, "writer") + `}`, ""},
		{"who may bind another role", eve, `{kind: RoleBinding, metadata: {name: x, namespace: dev}, ` + fmt.Sprintf(ref, "reader") + `}`,
			`rolebindings` + group + ` "x" is forbidden: ` + ofEve + `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`},
		{"more subjects of a binding", ann, `{kind: RoleBinding, metadata: {name: eve, namespace: dev}, subjects: [{kind: User, name: ann}]}`,
			`rolebindings` + group + ` "eve" is forbidden: ` + ofAnn + `{APIGroups:["rbac.authorization.k8s.io"], Resources:["clusterroles"], ResourceNames:["writer"], Verbs:["bind"]}` + "\n" +
				`{APIGroups:["rbac.authorization.k8s.io"], Resources:["roles"], Verbs:["escalate"]}`},
		{"the owners of a binding", ann, `{kind: RoleBinding, metadata: {name: eve, namespace: dev, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]}}`, ""},
		{"system:masters", master, `{kind: ClusterRoleBinding, metadata: {name: x}, ` + fmt.Sprintf(ref, "none") + `}`, ""},
		{"a controller", nil, `{kind: ClusterRoleBinding, metadata: {name: x}, ` + fmt.Sprintf(ref, "all") + `}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := newWorld(t).write(tt.user, tt.document)
			if err == nil {
				err = errors.New("")
			}
			if got := err.Error(); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}
