// Package object represents Kubernetes objects of any kind: as trees of JSON values with
// metadata, and as stored bytes.
//
// A Tree is an object that is being written. An Encoded is an object that is only read: the
// stored bytes, which are not parsed again, with the metadata that selections and responses need,
// and the offsets at which a response differs from the stored bytes.
//
// The package does not know schemas, kinds or storage.
//
// # The wing
//
// The packages below this one are plain values without I/O: codec decodes and encodes trees,
// resource describes a kind (Definition) and lists the served kinds (Catalog), request is a
// parsed request with its user, span starts the spans of its trace, status is the error that a client receives, groupversion lists
// the versions of Kubernetes, bounded is a cache, histogram creates histograms of metrics. The wing imports no other wing.
//
// Begin with encoded.go, then resource/definition.go.
package object
