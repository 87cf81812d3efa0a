// Package admission is the module in which Kubernetes' own tests of admission webhooks and policies
// run against anykind (make upstream-admission).
//
// Nothing of the tests is in the repository. The command of the folder above copies them from the
// module cache to a folder that git ignores, and changes two imports: that of what starts a
// kube-apiserver is starter, and that of what finds an etcd is framework.
package admission
