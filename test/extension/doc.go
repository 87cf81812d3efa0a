// Package extension runs anykind behind a published kube-apiserver with an etcd of its own, as "Set up
// an Extension API Server" in Kubernetes' documentation describes.
//
// The tests are users of the cluster. They reach custom resources in anykind through the cluster, and
// anykind directly with certificates and tokens of the cluster.
package extension
