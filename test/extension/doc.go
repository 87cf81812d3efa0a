// Package extension runs anykind behind a published kube-apiserver, which has an etcd of its own: as
// "Set up an Extension API Server" in Kubernetes' documentation describes.
//
// The tests are users of the cluster. They reach custom resources that are stored in anykind through
// the cluster, and anykind itself with what the cluster gave them: certificates and tokens.
package extension
