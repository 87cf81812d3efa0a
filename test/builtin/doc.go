// Package builtin compares the built-in kinds with kube-apiserver's, in one process and
// without a listener.
//
// Upstream's side is its own code: decoding with defaults, and the strategies that prepare,
// validate and warn. Our side is the handler that users get, over a store in memory. Objects
// come from corpus, one mutation at a time, or two fields of one struct at a time; changes
// says what else is sent. What is updated may be wrong already, where it is stored. What
// differs is put into classes, and known.txt says which classes are known and why.
//
// Admission, allocation of addresses, and what depends on other objects are not in it:
// test/compare asks live servers for those.
package builtin
