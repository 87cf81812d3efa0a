// Package celrule validates custom resources by the rules of their schema, the
// expressions (CEL) of x-kubernetes-validations.
//
// Check looks at a schema that somebody wants to store: does every rule compile, and
// what would it cost at worst. Rules are the rules of one version. They are compiled
// when they are first needed, and validate objects within a budget. Both work on
// nodes: a node is a place in a schema as expressions see it, with its type and the
// limits of its size. Expressions read objects as they are; nothing is copied.
//
// The package knows schemas, decoded objects and CEL. It validates rules and nothing
// else: an object has passed its schema before it comes here. It does not know HTTP,
// storage or CustomResourceDefinitions.
package celrule

// The limits of Kubernetes.
const (
	// RuleCostLimit is what one expression may cost at worst, as estimated,
	// counting how often it may run for one object.
	RuleCostLimit = 10_000_000
	// SchemaCostLimit is what all expressions of one schema may cost at worst.
	SchemaCostLimit = 100_000_000
	// CallBudget is what one evaluation of an expression may cost.
	CallBudget = 1_000_000
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
