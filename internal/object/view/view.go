// Package view has the forms in which clients see a kind: its schema in OpenAPI, and its columns in tables.
//
// The package only describes them. Package model makes schemas, kinds have columns, and package codec writes
// the cells.
package view

import "k8s.io/kube-openapi/pkg/validation/spec"

// A Model is a schema as published in OpenAPI v3.
type Model struct {
	// Name of the schema in Schemas, such as io.k8s.api.core.v1.ConfigMap.
	Name string
	// List is the name of the schema of its list in Schemas.
	List string
	// Keeps: unknown fields are preserved. Old CustomResourceDefinitions can say so beside the
	// schema.
	Keeps bool
	// Schemas has the named schemas and all that they refer to.
	Schemas map[string]*spec.Schema
}

// A Column describes one column of a Table.
type Column struct {
	Name        string
	Type        string
	Format      string
	Description string
	Priority    int32
	// Cell computes the value of the column: nil, a string, int64, float64 or
	// bool, an Age or a TextWithAge.
	Cell func(obj map[string]any) any
}

// An Age is a cell with a timestamp (RFC 3339). The writer of a Table turns it into an age.
type Age string

// A TextWithAge is a cell with an Age inside a text. The Age is not empty.
type TextWithAge struct {
	Before string
	At     Age
	After  string
}
