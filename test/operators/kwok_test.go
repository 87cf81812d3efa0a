package operators

import (
	"fmt"
	"testing"
)

// KWOK reports nodes as ready and their pods as running, renews the leases of nodes, and removes
// deleted pods.
func TestKWOK(t *testing.T) {
	needs(t)
	c := serving(t)
	documents := published(t, "kwok")
	install(t, c, "kwok", "", documents)
	p := start(t, c, "sigs.k8s.io/kwok/cmd/kwok", documents, Operator{Deployment: "kube-system/kwok-controller",
		Flags: []string{"--kubeconfig=" + c.AccountFile("kwok-controller"), fmt.Sprintf("--node-port=%d", free(t)), "--server-address=" + local(t)}})
	apply(t, c, `
apiVersion: v1
kind: Node
metadata:
  name: one
  annotations: {kwok.x-k8s.io/node: fake}
  labels: {kubernetes.io/os: linux, type: kwok}
status:
  allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
  capacity: {cpu: "32", memory: 256Gi, pods: "110"}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default}
spec:
  nodeName: one
  containers: [{name: web, image: web}]
`)
	eventually(t, "the node is ready", func() bool {
		return get(t, c, "node", "one", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`) == "True"
	})
	eventually(t, "the node has a lease", func() bool {
		return get(t, c, "lease", "one", "-n", "kube-node-lease", "-o", "jsonpath={.spec.holderIdentity}") != ""
	})
	eventually(t, "the pod runs", func() bool {
		return get(t, c, "pod", "web", "-o", `jsonpath={.status.phase} {.status.conditions[?(@.type=="Ready")].status}`) == "Running True"
	})
	// The deletion ends only when the node confirms it.
	if _, said, err := c.Run(t.Context(), "delete", "pod", "web", "--timeout=60s"); err != nil {
		t.Errorf("the pod does not go: %s", said)
	}
	blameless(t, p)
}
