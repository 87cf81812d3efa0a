// Package egress tests the ways out of the server and into it, with programs that others publish, as
// processes: the server and the agents of Konnectivity, a SOCKS5 proxy, kubectl proxy and a browser.
//
// The agents are in a network of their own: only they know the names that end with
// ".only-the-agent.test", see the command in the folder agent. A webhook at such a name is reached
// through an agent, or not at all. What a client is told when the way is broken, and what metrics
// say of it, is in testdata, as the published kube-apiserver has it:
//
//	go test . -run TestFailures -reference
//	go test . -run TestFailures -reference -update
//	go test . -run TestChurn -churn 10m -v
package egress
