// Package controlplane tests the rest of a control plane beside the server: the published
// kube-scheduler and kube-controller-manager, as processes, and kubectl.
//
// Scripts say what they do: those in schedulers are the page "Configure Multiple Schedulers" of
// Kubernetes' documentation, those in controllers show each controller of
// kube-controller-manager doing its work, and those in workloads what a user does with both. There
// are no containers; a small stand-in for the kubelet says of pods that they run. What the
// programs log as an error must be in known.txt.
package controlplane
