// Package kubernetes is the top of the runners of Kubernetes' own tests, as published in
// k8s.io/kubernetes, against anykind and against kube-apiserver:
//
// - cmd: test/cmd, the shell suite of kubectl
// - integration: packages of test/integration about the API
// - e2e: the end-to-end tests of API machinery, with a fake node
//
// The repository has no part of them. A runner copies them from the module cache to a folder that git
// ignores, replaces kube-apiserver by our program, and compares the results. Each runner has a
// known.txt, the list of tests that may fail, each with a reason.
//
// Package controllers has tests of our own: it imports controllers of kube-controller-manager.
package kubernetes
