// Package builtin compares the built-in kinds with kube-apiserver's, in one process and without a
// listener.
//
// Upstream's side is its own code: decoding with defaults, and the strategies that prepare, validate
// and warn. Our side is the server's handler over a store in memory. The requests come from the
// corpus, with one mutation at a time, or with two mutations of one struct; the folder changes adds
// more. The stored object of an update may be invalid already. Differences are grouped into classes,
// and known.txt lists the known classes with their reasons.
//
// Admission, allocation of addresses, and effects of other objects are out of scope: test/compare
// compares live servers for these.
package builtin
