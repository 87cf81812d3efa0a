// Package kyverno names what Kyverno's suites are built from: its requirements are many, and its own.
// No package imports them: go mod tidy would leave them out.
package kyverno
