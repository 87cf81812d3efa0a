// Package egress tests outgoing connections of the server, and proxies to it, with published programs
// as processes: the server and the agents of Konnectivity, a SOCKS5 proxy, kubectl proxy and a
// browser.
//
// The agents are in a network of their own: only they resolve the names that end with
// ".only-the-agent.test", see the command in the folder agent. A webhook at such a name is reachable
// only through an agent. testdata has the errors for clients and the metrics of a broken connection,
// as of the published kube-apiserver:
//
//	go test . -run TestFailures -reference
//	go test . -run TestFailures -reference -update
//	go test . -run TestChurn -churn 10m -v
package egress
