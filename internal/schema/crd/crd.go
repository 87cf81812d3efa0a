// Package crd serves the kinds that CustomResourceDefinitions define.
//
// It has two parts. The Definition of the kind CustomResourceDefinition has the hooks of a write:
// defaults, validation, and the accepted names, which are decided inside the write. The Registrar
// follows the stored definitions, compiles them with internal/schema/crd/compile, puts the results
// into the resource.Catalog, and gives freed names to waiting definitions.
//
// internal/controller/definition deletes the objects of a deleted definition. The package does not
// know HTTP, the validation of an object by its schema, or how objects are written.
package crd

import (
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/resource"
)

// Group, Plural and Kind name the resource of CustomResourceDefinitions.
const (
	Group  = "apiextensions.k8s.io"
	Plural = "customresourcedefinitions"
	Kind   = "CustomResourceDefinition"
)

// Prefix is the prefix of the keys of CustomResourceDefinitions.
var Prefix = resource.CustomPrefix(Group, Plural)

// names are the names of a kind, requested or accepted.
type names = v1.CustomResourceDefinitionNames

// condition is one condition of a CustomResourceDefinition's status.
type condition = v1.CustomResourceDefinitionCondition
