// Package clients proves that the clients of Kubernetes work as they are: those
// of client-go (typed, dynamic, informers, leader election) and the manager of
// controller-runtime, against a server inside the test.
//
// Nothing here is set up otherwise than in a program that talks to a cluster. The
// package is a module of its own, so that what these clients need stays out of
// everything else.
package clients
