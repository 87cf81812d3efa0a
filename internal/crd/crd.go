// Package crd turns stored CustomResourceDefinitions into what is served.
//
// It has three parts. Compile makes a resource.Definition of one
// CustomResourceDefinition, and does as little of it as can be done before
// anybody uses the kind. The definition of the kind CustomResourceDefinition
// itself says what one may be (defaults, validation) and settles, while it is
// being written, which names it gets and whether it is served. The Registrar
// follows what is stored, puts the Definitions into the resource.Catalog, and
// gives names that come free to those who wait for them.
//
// The package knows CustomResourceDefinitions from end to end, but for what
// becomes of the objects of one that is deleted, which a controller knows
// (internal/controller/definition). It does not know HTTP, nor what a schema does
// with an object, nor how objects are written.
package crd

import (
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Group, Plural and Kind name the resource of CustomResourceDefinitions.
const (
	Group  = "apiextensions.k8s.io"
	Plural = "customresourcedefinitions"
	Kind   = "CustomResourceDefinition"
)

// Prefix begins the key of every stored CustomResourceDefinition.
const Prefix = "/registry/" + Group + "/" + Plural + "/"

// groupPriority is where custom resources stand in discovery: after every group
// that is built in.
const groupPriority = 1000

// names are the names of a kind, as asked for or as accepted.
type names = v1.CustomResourceDefinitionNames

// condition is one condition of a CustomResourceDefinition's status.
type condition = v1.CustomResourceDefinitionCondition
