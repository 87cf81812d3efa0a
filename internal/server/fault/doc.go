// Package fault makes selected requests fail, for tests of their clients.
//
// A Fault has a selection of requests and an Effect: an error, a delay, a lost connection. A Set has the
// faults of one server, and counts the affected requests. Handler is the page of a Set: clients of any
// language inject faults there, as JSON.
//
// The package knows parsed requests. It does not know how the server handles them.
package fault
