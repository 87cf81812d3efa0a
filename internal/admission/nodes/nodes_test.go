package nodes_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/nodes"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/store/stored"
)

// A new Node gets the taint once.
func TestTaints(t *testing.T) {
	const taint = `{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"}`
	for taints, want := range map[string]string{
		``:                              `[` + taint + `]`,
		`[{key: a, effect: NoExecute}]`: `[{"effect":"NoExecute","key":"a"},` + taint + `]`,
		`[{key: node.kubernetes.io/not-ready, effect: NoSchedule}]`: `[` + taint + `]`,
		`[{key: node.kubernetes.io/not-ready, effect: NoExecute}]`:  `[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready"},` + taint + `]`,
	} {
		w := admissiontest.New(t, func(*admissiontest.World) []any { return []any{nodes.TaintByCondition{}} })
		made, err := w.Create("{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: " + taints + "}}")
		if got := admissiontest.Field(made, "spec.taints"); err != nil || got != want {
			t.Errorf("%s: %s %v, want %s", taints, got, err, want)
		}
	}
}

// noOpinion denies all permissions.
type noOpinion struct{}

func (noOpinion) Authorize(context.Context, *authz.Attributes) (authz.Decision, string, error) {
	return authz.NoOpinion, "", nil
}

func restricted(t *testing.T) *admissiontest.World { return restrictedWith(t, nil) }

func restrictedWith(t *testing.T, gates *gate.Set) *admissiontest.World {
	w := admissiontest.NewWithGates(t, gates, func(w *admissiontest.World) []any {
		return []any{&nodes.Restriction{
			Authorizer:      noOpinion{},
			Pods:            stored.List[corev1.Pod](w.Cache, w.Kinds, corev1.Resource("pods")),
			Nodes:           stored.List[corev1.Node](w.Cache, w.Kinds, corev1.Resource("nodes")),
			ServiceAccounts: stored.List[corev1.ServiceAccount](w.Cache, w.Kinds, corev1.Resource("serviceaccounts")),
			Claims:          stored.List[corev1.PersistentVolumeClaim](w.Cache, w.Kinds, corev1.Resource("persistentvolumeclaims")),
			Volumes:         stored.List[corev1.PersistentVolume](w.Cache, w.Kinds, corev1.Resource("persistentvolumes")),
			Drivers:         stored.List[storagev1.CSIDriver](w.Cache, w.Kinds, storagev1.Resource("csidrivers")),
		}}
	})
	w.Have(`{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {mine: a}}, spec: {taints: [{key: a, effect: NoSchedule}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: mine, labels: {a: b}}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: others}, spec: {nodeName: n2, containers: [{name: c, image: i}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, spec: {volumeName: v, storageClassName: "", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	w.User = &request.User{Name: "system:node:n1", Groups: []string{"system:nodes"}}
	return w
}

// A node requests a certificate for itself only, unless a gate of former releases is on.
func TestInsecureSigningRequests(t *testing.T) {
	for _, on := range []bool{false, true} {
		w := restrictedWith(t, gate.With(map[gate.Name]bool{gate.AllowInsecureKubeletCertificateSigningRequests: on}))
		_, err := w.Create(`{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: c}, spec: {signerName: kubernetes.io/kubelet-serving, usages: [digital signature], request: eA==}}`)
		if err == nil || strings.Contains(err.Error(), "is forbidden: unable to parse csr") == on {
			t.Errorf("gate %v: %v", on, err)
		}
	}
}

// The expected error is a prefix; an empty one means that the write is allowed.
func TestRestriction(t *testing.T) {
	tests := []struct{ name, write, by, want string }{
		{"another node", `{apiVersion: v1, kind: Node, metadata: {name: n2}}`, "create", `nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"`},
		{"its label", `{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {mine: b, kubernetes.io/os: linux}}}`, "", ""},
		{"a label by which pods find nodes", `{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {node-role.kubernetes.io/a: "", x.node-restriction.kubernetes.io/b: c}}}`, "",
			`nodes "n1" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/a, x.node-restriction.kubernetes.io/b`},
		{"its taints", `{apiVersion: v1, kind: Node, metadata: {name: n1}, spec: {taints: null}}`, "", `nodes "n1" is forbidden: node "n1" is not allowed to modify taints`},
		{"its owner", `{apiVersion: v1, kind: Node, metadata: {name: n1, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u}]}}`, "",
			`nodes "n1" is forbidden: node "n1" is not allowed to modify ownerReferences`},
		{"its status", `{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: "1"}}}`, "status", ""},
		{"the status of its pod", `{apiVersion: v1, kind: Pod, metadata: {name: mine}, status: {phase: Running}}`, "status", ""},
		{"the labels of its pod", `{apiVersion: v1, kind: Pod, metadata: {name: mine, labels: {a: c}}}`, "status", `pods "mine" is forbidden: node "n1" cannot update labels through pod status`},
		{"claims of its pod", `{apiVersion: v1, kind: Pod, metadata: {name: mine}, status: {resourceClaimStatuses: [{name: a, resourceClaimName: b}]}}`, "status",
			`pods "mine" is forbidden: node "n1" cannot update resource claim statues`},
		{"the status of another pod", `{apiVersion: v1, kind: Pod, metadata: {name: others}, status: {phase: Running}}`, "status",
			`pods "others" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself`},
		{"its pod", `{apiVersion: v1, kind: Pod, metadata: {name: mine, labels: {b: c}}}`, "", `pods "mine" is forbidden: unexpected operation "UPDATE", node "n1" can only create and delete mirror pods`},
		{"a pod like others", `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {nodeName: n1, containers: [{name: c, image: i}]}}`, "create",
			`pods "p" is forbidden: pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods`},
		{"the size of a volume", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim}, status: {capacity: {storage: 1Gi}}}`, "status", ""},
		{"more of a claim", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim, labels: {a: b}}}`, "status",
			`persistentvolumeclaims "claim" is forbidden: node "n1" is not allowed to update fields other than status.quantity and status.conditions: `},
		{"a claim", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: claim, labels: {a: b}}}`, "", `persistentvolumeclaims "claim" is forbidden: may only update PVC status`},
		{"a Lease elsewhere", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: n1}}`, "create",
			`leases.coordination.k8s.io "n1" is forbidden: can only access leases in the "kube-node-lease" system namespace`},
		{"its CSINode", `{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: {drivers: []}}`, "create", ""},
		{"another CSINode", `{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n2}, spec: {drivers: []}}`, "create",
			`csinodes.storage.k8s.io "n2" is forbidden: can only access CSINode with the same name as the requesting node`},
		{"a slice of another node", `{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: s}, spec: {driver: d, nodeName: n2, pool: {name: p, generation: 1, resourceSliceCount: 1}}}`, "create",
			`resourceslices.resource.k8s.io "s" is forbidden: can only create ResourceSlice with the same NodeName as the requesting node`},
		{"an object of no node", `{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}`, "create", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := restricted(t)
			write := func() (map[string]any, error) { return w.Update(test.write, test.by) }
			if test.by == "create" {
				write = func() (map[string]any, error) { return w.Create(test.write) }
			}
			_, err := write()
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)):
				t.Errorf("%v\nwant\n%s", err, test.want)
			}
		})
	}
}

// A user that lacks the name or the group of a node is no node. A node without a name cannot write
// objects of nodes.
func TestIdentity(t *testing.T) {
	for _, test := range []struct {
		user request.User
		want string
	}{
		{request.User{Name: "system:node:n2"}, ""},
		{request.User{Name: "jane", Groups: []string{"system:nodes"}}, ""},
		{request.User{Name: "system:node:", Groups: []string{"system:nodes"}}, `nodes "n1" is forbidden: could not determine node from user "system:node:"`},
	} {
		w := restricted(t)
		w.User = &test.user
		_, err := w.Update(`{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {k8s.io/a: b}}}`, "")
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v: %s, want %s", test.user, got, test.want)
		}
	}
}
