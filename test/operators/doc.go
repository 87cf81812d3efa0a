// Package operators runs published software for Kubernetes: the manifests of projects, their
// controllers, and the test suites of these controllers.
//
// All of it comes from published Go modules, and none of it is copied. The modules under published
// have the manifests. Those under programs have the sources of controllers and suites, which nothing
// here imports.
package operators
