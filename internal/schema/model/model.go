// Package model publishes schemas in OpenAPI v3: those of custom resources, and
// those that Go types imply.
//
// It takes a schema or a type and returns the schemas of a kind and of all it
// refers to, by name. What goes around them, the paths and operations of a
// document, is package openapi's.
package model

// Kind names the kind whose schema is published.
type Kind struct {
	Group    string
	Version  string
	Kind     string
	ListKind string
	Plural   string
	// SelectableFields are the JSON paths that the version declares, published
	// beside the schema.
	SelectableFields []string
	// PreserveUnknownFields turns pruning off as a whole, for definitions that
	// were made before v1 required schemas.
	PreserveUnknownFields bool
}
