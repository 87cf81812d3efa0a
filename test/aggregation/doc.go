// Package aggregation tests the server in front of another one: the published
// k8s.io/sample-apiserver with an etcd of its own, as processes, and kubectl.
//
// The script in scripts is the fifteen steps of the page "Set up an Extension API Server" of
// Kubernetes' documentation, and what a user does with the kinds that are then there. TestSame
// sends the same requests through anykind and through the published kube-apiserver, and compares
// the answers. With -reference, the scripts run against kube-apiserver.
package aggregation
