// Package app composes a server from options, and stops it.
//
// It is the only package that knows all backends and parts, and the order in which the parts
// start. They stop in reverse order. It does not know the work of a part.
//
// # The wing
//
// flags turns the flags of a server into options; fakeetcd answers programs that start an etcd.
// The wing imports all wings before it.
//
// Begin with wire.go.
package app
