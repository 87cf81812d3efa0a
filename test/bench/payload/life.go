package payload

import "fmt"

// Node is the nth node of a cluster, before its kubelet says anything.
func Node(n int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-%d","labels":{"kubernetes.io/hostname":"node-%d","kubernetes.io/os":"linux"}},`+
		`"status":{"capacity":{"cpu":"64","memory":"256Gi","pods":"110"},"allocatable":{"cpu":"64","memory":"256Gi","pods":"110"}}}`, n, n)
}

// Fleet is the path of the Deployments of a cluster, and FleetMember that of the nth one.
const Fleet = "/apis/apps/v1/namespaces/default/deployments"

// FleetMember is the path of the nth Deployment of a cluster.
func FleetMember(n int) string { return fmt.Sprintf("%s/fleet-%d", Fleet, n) }

// FleetDeployment is the nth Deployment of a cluster.
func FleetDeployment(n, replicas int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"fleet-%d"},"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"fleet-%d"}},`+
		`"template":{"metadata":{"labels":{"app":"fleet-%d"}},"spec":{"containers":[{"name":"web","image":"example.com/web:1","resources":{"requests":{"cpu":"10m","memory":"16Mi"}}}]}}}}`, n, replicas, n, n)
}
