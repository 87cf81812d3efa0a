// Package kyverno lists the Go modules of Kyverno's suites: it has many requirements of its own. No
// package imports them: go mod tidy would remove them.
package kyverno
