// Package celrule validates custom resources by the CEL rules of their schema
// (x-kubernetes-validations).
//
// Check validates the rules of a new schema: each rule compiles, and its estimated cost is within the
// limits. Rules are the rules of one version; they are compiled on first use and validate objects
// within a budget. Both work on nodes. A node is a place in a schema as expressions see it, with its
// type and the limits of its size. Expressions read objects without copying them.
//
// The package knows schemas, decoded objects and CEL. Objects have been validated by their schema
// before. The package does not know HTTP, storage or CustomResourceDefinitions.
package celrule

// The limits of Kubernetes.
const (
	// RuleCostLimit limits the estimated worst-case cost of one expression, times the number of its
	// evaluations for one object.
	RuleCostLimit = 10_000_000
	// SchemaCostLimit limits the estimated worst-case cost of all expressions of one schema.
	SchemaCostLimit = 100_000_000
	// ObjectBudget limits the cost of all evaluations for one object.
	ObjectBudget = 10_000_000
	// messageLimit limits the bytes of the result of a messageExpression.
	messageLimit = 5 << 10
	// requestLimit is the size of the largest object that can be sent.
	requestLimit = 3 << 20
)

// Names of the validated values in expressions.
const (
	selfName    = "self"
	oldSelfName = "oldSelf"
)
