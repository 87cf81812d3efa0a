// Package app puts a server together from options, and takes it apart again.
//
// It is the only package that knows which backends and which parts there are, and in which
// order the parts start; they stop in reverse order. It does not know what a part does.
//
// # The wing
//
// flags turns the flags of a server into options; etcddoor answers for programs that start an
// etcd. The wing imports all wings before it.
//
// Begin with wire.go.
package app
