// Package model publishes schemas as OpenAPI v3: those of custom resources, and those
// implied by Go types.
//
// It takes a schema or a type and returns the schemas of a kind, and of everything it
// refers to, by name. Package openapi writes the rest of a document: paths and operations.
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
	// PreserveUnknownFields turns off pruning as a whole, for definitions from before v1 required
	// schemas.
	PreserveUnknownFields bool
}
