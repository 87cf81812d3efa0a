// Package gatekeeper lists the Go modules of Gatekeeper, which requires an older k8s.io/apiserver than
// the other programs. All other versions equal theirs.
package gatekeeper
