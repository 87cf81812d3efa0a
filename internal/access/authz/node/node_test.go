package node

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

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
	*testing.T
	Authorizer
	backend kv.Backend
	set     *resource.Set
}

func newWorld(t *testing.T) *world {
	t.Helper()
	var kinds []*resource.Definition
	for _, r := range resources() {
		kinds = append(kinds, &resource.Definition{Group: r.Group, Plural: r.Resource, StoragePrefix: "/registry/" + r.Resource + "/",
			Namespaced: r.Resource == "pods" || r.Resource == "podcertificaterequests"})
	}
	w := &world{T: t, backend: memkv.New(memkv.Options{}), set: resource.NewSet(kinds)}
	cache := watchcache.New(w.backend, watchcache.Options{})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- cache.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	w.Read(cache, w.set, nil)
	return w
}

// store writes an object in YAML. An empty document deletes the object.
func (w *world) store(plural, namespace, name, document string) {
	w.Helper()
	d := w.set.Lookup(groups[plural], plural)
	key := d.Key(namespace, name)
	var data []byte
	if document != "" {
		var o object.Tree
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			w.Fatal(err)
		}
		o["metadata"] = object.Tree{"namespace": namespace, "name": name, "annotations": o["annotations"]}
		var err error
		if data, err = json.Marshal(o); err != nil {
			w.Fatal(err)
		}
	}
	current, err := w.backend.Get(w.Context(), key, kv.Latest)
	if err != nil && !errors.Is(err, kv.ErrNotFound) {
		w.Fatal(err)
	}
	if _, err := w.backend.Commit(w.Context(), kv.Write{Key: key, Value: data, Expect: current.Revision}); err != nil {
		w.Fatal(err)
	}
}

var groups = map[string]string{
	"volumeattachments": "storage.k8s.io", "resourceslices": "resource.k8s.io", "podcertificaterequests": "certificates.k8s.io",
	"leases": "coordination.k8s.io", "csinodes": "storage.k8s.io", "resourceclaims": "resource.k8s.io",
}

// ask returns the answer to a request of a node: "VERB RESOURCE[/SUBRESOURCE] [NAMESPACE/][NAME]".
func (w *world) ask(node, words string) string {
	w.Helper()
	f := append(strings.Fields(words), "")
	a := &authz.Attributes{User: &request.User{Name: "system:node:" + node, Groups: []string{"system:nodes"}}, Info: request.Info{Verb: f[0], IsResource: true}}
	a.Resource, a.Subresource, _ = strings.Cut(f[1], "/")
	a.Group = groups[a.Resource]
	if namespace, name, ok := strings.Cut(f[2], "/"); ok {
		a.Namespace, a.Name = namespace, name
	} else {
		a.Name = f[2]
	}
	decision, reason, err := w.Authorize(w.Context(), a)
	if err != nil {
		w.Fatal(err)
	}
	return strings.TrimSpace(decision.String() + " " + reason)
}

// may compares the nodes that are allowed a request.
func (w *world) may(words, want string) {
	w.Helper()
	got := ""
	for _, node := range []string{"n1", "n2"} {
		if w.ask(node, words) == "Allow" {
			got += node + " "
		}
	}
	if got = strings.TrimSpace(got); got != want {
		w.Errorf("%s: %q may, want %q", words, got, want)
	}
}

// A node may read the objects that its pods use, while the pods exist.
func TestPods(t *testing.T) {
	w := newWorld(t)
	const all = `{spec: {nodeName: n1, serviceAccountName: robot,
		volumes: [{name: v, secret: {secretName: s}}, {name: c, persistentVolumeClaim: {claimName: claim}}, {name: e, ephemeral: {}}],
		containers: [{envFrom: [{configMapRef: {name: cm}}]}],
		resourceClaims: [{name: r, resourceClaimTemplateName: t}]}, status: {resourceClaimStatuses: [{name: r, resourceClaimName: made}]}}`
	uses := []string{
		"get secrets ns/s", "list secrets ns/s", "watch configmaps ns/cm", "get persistentvolumeclaims ns/claim", "update persistentvolumeclaims/status ns/claim",
		"get persistentvolumeclaims ns/p-e", "get resourceclaims ns/made", "create serviceaccounts/token ns/robot", "get serviceaccounts ns/robot", "get pods ns/p", "watch pods ns/p",
	}
	may := func(who string) {
		t.Helper()
		for _, words := range uses {
			w.may(words, who)
		}
	}
	may("")
	w.store("pods", "ns", "p", all)
	may("n1")
	w.store("pods", "ns", "q", strings.ReplaceAll(all, "n1", "n2"))
	w.may("get secrets ns/s", "n1 n2")
	w.may("get secrets other/s", "")
	w.may("get pods ns/q", "n2")
	w.may("get persistentvolumeclaims ns/q-e", "n2")
	w.store("pods", "ns", "q", "")
	may("n1")
	w.store("pods", "ns", "p", strings.ReplaceAll(all, "{spec", "{annotations: {kubernetes.io/config.mirror: x}, spec"))
	w.may("get secrets ns/s", "")
	w.may("get pods ns/p", "n1")
	w.store("pods", "ns", "p", strings.ReplaceAll(all, "nodeName: n1, ", ""))
	may("")
}

// Access to a claim implies access to its volume and the secrets of the volume.
func TestVolumes(t *testing.T) {
	w := newWorld(t)
	const volume = `{spec: {claimRef: {namespace: ns, name: claim}, csi: {driver: d, nodeStageSecretRef: {namespace: sys, name: stage}, controllerPublishSecretRef: {namespace: sys, name: publish}}}}`
	w.store("persistentvolumes", "", "v", volume)
	w.may("get persistentvolumes v", "")
	w.store("pods", "ns", "p", `{spec: {nodeName: n2, volumes: [{name: c, persistentVolumeClaim: {claimName: claim}}]}}`)
	w.may("get persistentvolumes v", "n2")
	w.may("get secrets sys/stage", "n2")
	w.may("get secrets sys/publish", "")
	w.store("persistentvolumes", "", "v", strings.Replace(volume, "name: claim", "name: other", 1))
	w.may("get secrets sys/stage", "")
	w.store("persistentvolumes", "", "v", volume)
	w.may("get secrets sys/stage", "n2")
	w.store("persistentvolumes", "", "v", "")
	w.may("get secrets sys/stage", "")
	for _, plural := range []string{"volumeattachments", "resourceslices"} {
		w.store(plural, "", "x", "{spec: {nodeName: n1}}")
		w.may("get "+plural+" x", "n1")
		w.store(plural, "", "x", "")
		w.may("get "+plural+" x", "")
	}
	w.store("podcertificaterequests", "ns", "x", "{spec: {nodeName: n1}}")
	w.may("get podcertificaterequests ns/x", "n1")
}

// Denials have the reasons of Kubernetes.
func TestReasons(t *testing.T) {
	w := newWorld(t)
	for words, want := range map[string]string{
		"get secrets ns/s":                    "NoOpinion no relationship found between node 'n1' and this object",
		"list secrets ns/":                    "NoOpinion No Object name found",
		"list secrets":                        "NoOpinion can only read namespaced object of this type",
		"delete secrets ns/s":                 "NoOpinion can only read resources of this type",
		"get secrets/x ns/s":                  "NoOpinion cannot read subresource",
		"list persistentvolumes":              "NoOpinion can only get individual resources of this type",
		"get persistentvolumeclaims/status p": "NoOpinion can only get/update/patch this type",
		"create serviceaccounts ns/a":         "NoOpinion can only create token subresource of serviceaccount",
		"create serviceaccounts/token ns/":    "NoOpinion can only create tokens for individual service accounts",
		"get nodes n1":                        "Allow",
		"get nodes n2":                        "NoOpinion node 'n1' cannot read 'n2', only its own Node object",
		"list nodes":                          "NoOpinion node 'n1' cannot read all nodes, only its own Node object",
		"delete nodes n1":                     "NoOpinion",
		"update nodes/status n2":              "Allow", // admission checks the name
		"list pods":                           "NoOpinion can only list/watch pods with spec.nodeName field selector",
		"update pods ns/p":                    "NoOpinion",
		"create pods/eviction ns/p":           "Allow",
		"get leases ns/n1":                    `NoOpinion can only access leases in the "kube-node-lease" system namespace`,
		"get leases kube-node-lease/n2":       "NoOpinion can only access node lease with the same name as the requesting node",
		"update leases kube-node-lease/n1":    "Allow",
		"get csinodes/status n1":              "NoOpinion CSINode status access requires CSIVolumeHealth feature",
		"update csinodes n1":                  "Allow",
		"list resourceslices":                 "NoOpinion can only list/watch/deletecollection resourceslices with nodeName field selector",
		"update podcertificaterequests ns/x":  "NoOpinion nodes may not update podcertificaterequests",
		"get services ns/x":                   "Allow",
		"delete services ns/x":                "NoOpinion",
	} {
		if got := w.ask("n1", words); got != want {
			t.Errorf("%s: %s, want %s", words, got, want)
		}
	}
}

// A node has both a user name and the group of nodes. The authorizer has no opinion on other users.
func TestIdentity(t *testing.T) {
	w := newWorld(t)
	w.store("pods", "ns", "p", `{spec: {nodeName: n1, volumes: [{name: v, secret: {secretName: s}}]}}`)
	nodes := []string{"system:nodes"}
	for _, tt := range []struct {
		user     *request.User
		decision authz.Decision
		reason   string
		rules    string
	}{
		{nil, authz.NoOpinion, "", ""},
		{&request.User{Name: "system:node:n1", Groups: nodes}, authz.Allow, "", "node authorizer does not support user rule resolution"},
		{&request.User{Name: "system:node:n1"}, authz.NoOpinion, "", ""},
		{&request.User{Name: "system:node:n1", Groups: []string{"nodes", "system:authenticated"}}, authz.NoOpinion, "", ""},
		{&request.User{Name: "n1", Groups: nodes}, authz.NoOpinion, "", ""},
		{&request.User{Name: "system:node:", Groups: nodes}, authz.NoOpinion, `unknown node for user "system:node:"`, "node authorizer does not support user rule resolution"},
		{&request.User{Name: "System:node:n1", Groups: nodes}, authz.NoOpinion, "", ""},
	} {
		a := &authz.Attributes{User: tt.user, Info: request.Info{IsResource: true, Verb: "get", Resource: "secrets", Namespace: "ns", Name: "s"}}
		if got, reason, err := w.Authorize(t.Context(), a); got != tt.decision || reason != tt.reason || err != nil {
			t.Errorf("%+v: %v %q %v", tt.user, got, reason, err)
		}
		_, incomplete, err := authz.RulesFor(t.Context(), &w.Authorizer, tt.user, "ns")
		if incomplete != (tt.rules != "") || err != nil && err.Error() != tt.rules {
			t.Errorf("%+v: rules: %v %v", tt.user, incomplete, err)
		}
	}
}

// Unreadable objects add no edges.
func TestBroken(t *testing.T) {
	w := newWorld(t)
	w.store("pods", "ns", "p", `{spec: {nodeName: n1, containers: 7, volumes: [{name: v, secret: {secretName: s}}]}}`)
	w.may("get pods ns/p", "")
	w.may("get secrets ns/s", "")
}
