// Package celrule validates custom resources by the CEL rules of their schema
// (x-kubernetes-validations).
//
// Check validates the rules of a schema that is to be stored: whether each rule compiles, and
// what it may cost at most. Rules are the rules of one version; they are compiled on first use
// and validate objects within a budget. Both work on nodes. A node is a place in a schema as
// expressions see it, with its type and the limits of its size. Expressions read objects
// without copying them.
//
// The package knows schemas, decoded objects and CEL. Objects have been validated by their
// schema before. The package does not know HTTP, storage or CustomResourceDefinitions.
package celrule

// The limits of Kubernetes.
const (
	// RuleCostLimit is what one expression may cost at worst, as estimated,
	// counting how often it may run for one object.
	RuleCostLimit = 10_000_000
	// SchemaCostLimit is what all expressions of one schema may cost at worst.
	SchemaCostLimit = 100_000_000
	// ObjectBudget is what all evaluations for one object may cost.
	ObjectBudget = 10_000_000
	// messageLimit is how many bytes a messageExpression may make.
	messageLimit = 5 << 10
	// requestLimit is the size of the largest object that can be sent.
	requestLimit = 3 << 20
)

// The names of what is validated, in expressions.
const (
	selfName    = "self"
	oldSelfName = "oldSelf"
)
