package examples

import (
	"strings"
	"testing"
)

// What is compared is found: hundreds of objects of most kinds.
func TestPublished(t *testing.T) {
	kinds := map[string]int{}
	for _, d := range published(t) {
		kinds[d.Kind]++
	}
	for _, kind := range strings.Fields(`Pod Deployment Service ConfigMap Secret StatefulSet DaemonSet Job ReplicationController
		Role ClusterRole CustomResourceDefinition ResourceClaim HTTPRoute`) {
		if kinds[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
	}
}

func TestRead(t *testing.T) {
	for _, test := range []struct{ name, file, want string }{
		{"documents of a file", "a.yaml", "kind: A\napiVersion: v1\n---\n# nothing\n---\n{kind: B, apiVersion: v1}\n"},
		{"what is no object", "a.yaml", "kind: A\n"},
	} {
		_ = test
	}
}
