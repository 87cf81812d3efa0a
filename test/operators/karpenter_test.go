package operators

import (
	"fmt"
	"testing"
)

// Karpenter requests a node for an unschedulable pod, and its provider for KWOK creates one.
func TestKarpenter(t *testing.T) {
	needs(t)
	c := serving(t)
	documents := published(t, "karpenter")
	install(t, c, "karpenter", "karpenter", documents)
	p := start(t, c, "sigs.k8s.io/karpenter/kwok", documents, Operator{Deployment: "karpenter/karpenter",
		Flags: []string{fmt.Sprintf("--metrics-port=%d", free(t)), fmt.Sprintf("--health-probe-port=%d", free(t)), "--leader-election-namespace=karpenter"}})
	apply(t, c, `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
`)
	apply(t, c, `
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: default}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: "1"}}}]
`)
	// The condition that the scheduler sets on an unschedulable pod.
	if _, said, err := c.Run(t.Context(), "patch", "pod", "waits", "-n", "default", "--subresource=status", "-p",
		`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}]}}`); err != nil {
		t.Fatal(said)
	}
	eventually(t, "a claim of a node", func() bool {
		return get(t, c, "nodeclaims", "-o", "jsonpath={.items[*].status.conditions[?(@.type==\"Launched\")].status}") == "True"
	})
	eventually(t, "a node of the pool", func() bool {
		return get(t, c, "nodes", "-l", "karpenter.sh/nodepool=default", "-o", "name") != ""
	})
	blameless(t, p)
}
