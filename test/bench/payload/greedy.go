package payload

import "fmt"

const coordination = "coordination.k8s.io"

// LeasesPath is the path of the Leases of nodes.
const LeasesPath = "/apis/" + coordination + "/v1/namespaces/kube-node-lease/leases"

// Heartbeat is the nth patch of the Lease of a node.
func Heartbeat(n int) []byte {
	return encode(object{"spec": object{"renewTime": fmt.Sprintf("2026-01-01T00:00:00.%06dZ", n)}})
}

// NodeLease is the Lease of a node, and the right of its user to update it.
func NodeLease(node, user string) []Part {
	const at = rolesAPI + "/namespaces/kube-node-lease"
	return []Part{
		{LeasesPath, encode(object{
			"apiVersion": coordination + "/v1", "kind": "Lease", "metadata": object{"name": node, "namespace": "kube-node-lease"},
			"spec": object{"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"},
		})},
		{at + "/rolebindings", encode(object{
			"apiVersion": roles + "/v1", "kind": "RoleBinding", "metadata": object{"name": "node", "namespace": "kube-node-lease"},
			"roleRef":  object{"apiGroup": roles, "kind": "ClusterRole", "name": "system:node"},
			"subjects": []object{{"apiGroup": roles, "kind": "User", "name": user}},
		})},
	}
}
