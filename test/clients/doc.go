// Package clients tests unmodified Kubernetes clients: client-go (typed, dynamic, informers, leader
// election) and the manager of controller-runtime, against a server inside the test.
//
// Their setup is that of a program that uses a cluster. A module of its own keeps the dependencies of
// these clients away from the others.
package clients
