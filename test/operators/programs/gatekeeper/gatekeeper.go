// Package gatekeeper names the Go modules that Gatekeeper is built from, which is written for an
// older k8s.io/apiserver than the other programs. The versions are theirs otherwise.
package gatekeeper
