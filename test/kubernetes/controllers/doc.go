// Package controllers runs controllers of kube-controller-manager, as published in k8s.io/kubernetes, with
// the faults of envtest/verify.
package controllers
