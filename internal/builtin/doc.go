// Package builtin lists the kinds that are served without a CustomResourceDefinition: those a
// client or a controller takes for granted.
//
// Each is one resource.Definition, in a folder for its API group. The packages do not know how
// objects are stored or served, and nothing about controllers: no package here expires events or
// empties namespaces.
//
// # The wing
//
// kind builds a Definition from a Go type; rule has the table of rules of fields
// (rule/types/GROUP.VERSION.txt); allocation allocates addresses and ports for Services; usage
// measures the usage for quotas. The wing imports the wings object, store, network, registry,
// access and schema.
//
// Begin with coordination/lease.go, a short kind, then builtin.go.
package builtin
