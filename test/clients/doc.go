// Package clients tests unmodified Kubernetes clients: client-go (typed, dynamic, informers,
// leader election) and the manager of controller-runtime, against a server inside the test.
//
// They are set up as in a program that uses a cluster. The package is a module of its own, so
// the dependencies of these clients stay out of everything else.
package clients
