// Package registry creates, reads, changes and deletes objects. It works for any resource. A
// Definition is all that it needs for a kind.
//
// Reads return stored bytes from the watch cache. A write takes the tree that a client sent through
// one list of phases to one commit. The packages above decide the representation of an object (media
// types, tables, patches); the packages below store bytes.
//
// # The wing
//
// apply has the patches, with managed fields and server-side apply; fieldset has the sets of fields;
// convert converts objects between versions. The wing imports the wings object, store and network.
//
// Begin with pipeline.go for writes and read.go for reads.
package registry
