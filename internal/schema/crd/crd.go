// Package crd serves the kinds that CustomResourceDefinitions define.
//
// It has two parts. The Definition of the kind CustomResourceDefinition says what
// happens when one is written: defaults, validation, and which names it gets, which is
// decided inside the write. The Registrar follows what is stored, has
// internal/schema/crd/compile make Definitions of it, puts them into the resource.Catalog,
// and gives names that come free to those who wait for them.
//
// What becomes of the objects of a definition that is deleted is decided by
// internal/controller/definition. The package does not know HTTP, nor what a schema
// does with an object, nor how objects are written.
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

// Prefix begins the key of every stored CustomResourceDefinition.
var Prefix = resource.CustomPrefix(Group, Plural)

// names are the names of a kind, as asked for or as accepted.
type names = v1.CustomResourceDefinitionNames

// condition is one condition of a CustomResourceDefinition's status.
type condition = v1.CustomResourceDefinitionCondition
