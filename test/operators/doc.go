// Package operators runs what others publish for Kubernetes: the manifests by which projects
// are installed, their controllers, and the suites that they test these controllers with.
//
// All of it is taken from published Go modules, and nothing of it is copied. The modules under
// published have the manifests. Those under programs are what controllers and suites are built
// from, and nothing here imports them.
package operators
