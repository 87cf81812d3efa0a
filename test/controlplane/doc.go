// Package controlplane tests the rest of a control plane with the server: the published kube-scheduler
// and kube-controller-manager, as processes, and kubectl.
//
// The scripts in schedulers follow the page "Configure Multiple Schedulers" of Kubernetes'
// documentation, those in controllers show each controller of kube-controller-manager at work, and
// those in workloads show a user with both. There are no containers; a fake kubelet reports pods as
// running. Errors in the logs of the programs must be in known.txt.
package controlplane
