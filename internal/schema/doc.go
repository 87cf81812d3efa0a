// Package schema is the schema of one version of a kind: that of a custom resource, from
// its CustomResourceDefinition, or that of a Go type.
//
// A Schema is compiled when it is first needed, and can be dropped and compiled again.
// Package structural applies schemas of custom resources to objects, package gotype does so
// for Go types, and package model publishes both. The package knows nothing of HTTP,
// storage, other versions of a kind, or expressions (CEL).
//
// # The wing
//
// celprogram evaluates CEL expressions; celrule has the rules of schemas, celpolicy the
// expressions of admission webhooks and policies. crd is the kind CustomResourceDefinition: its
// validation, its compilation to a Definition, and the tools for authors. scale is the
// subresource of that name. The wing imports the wings object, store, network and registry.
//
// Begin with schema.go, then crd/compile.
package schema
