// Package object represents Kubernetes objects of any kind: as trees of JSON values with
// metadata, and as stored bytes.
//
// A Tree is an object that is being written. An Encoded is an object that is only passed on:
// the stored bytes, which are not parsed again, with the metadata that selections and
// responses need, and the places where a reader must see something other than the stored
// bytes.
//
// The package does not know schemas, kinds or storage.
//
// # The wing
//
// The packages below this one are plain values without I/O: codec turns bytes into trees and
// back, resource describes a kind (Definition) and lists the kinds that are served (Catalog),
// request is a parsed request with its user, status is the error that a client receives,
// groupversion orders the versions of Kubernetes. The wing imports no other wing.
//
// Begin with encoded.go, then resource/definition.go.
package object
