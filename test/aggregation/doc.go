// Package aggregation tests the server in front of another one: the published k8s.io/sample-apiserver
// with an etcd of its own, as processes, and kubectl.
//
// The script in scripts follows the fifteen steps of the page "Set up an Extension API Server" of
// Kubernetes' documentation, and then uses the new kinds. TestSame sends the same requests through
// anykind and through the published kube-apiserver, and compares the responses. With -reference, the
// scripts run against kube-apiserver.
package aggregation
