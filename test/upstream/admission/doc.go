// Package admission is the folder in which Kubernetes' own tests of admission webhooks and policies
// run against anykind (make upstream-admission).
//
// The repository has no part of the tests. The command in the folder above copies them from the module
// cache to a folder that git ignores, and replaces two imports: starter replaces the package that
// starts a kube-apiserver, and framework the one that finds an etcd.
package admission
