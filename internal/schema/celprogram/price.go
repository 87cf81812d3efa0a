package celprogram

import (
	"math"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apiserver/pkg/cel/library"
)

// A price computes the cost of a call.
type price func(args []ref.Val, result ref.Val) uint64

// priceOf finds the price of a call: that of the library that the function is
// from, of Kubernetes, or of the language.
func priceOf(call interpreter.InterpretableCall) price {
	function, overload := call.Function(), call.OverloadID()
	if p := libraryPrice(overload); p != nil {
		return p
	}
	otherwise := languagePrice(overload)
	switch function {
	case operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals,
		operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo, operators.Negate,
		operators.LogicalNot, operators.In, operators.NotStrictlyFalse, overloads.Size:
		return otherwise // Kubernetes has none for these
	}
	kubernetes := &library.CostEstimator{}
	return func(args []ref.Val, result ref.Val) uint64 {
		if cost := kubernetes.CallCost(function, overload, args, result); cost != nil {
			return *cost
		}
		return otherwise(args, result)
	}
}

// languagePrice returns the price of a function of the language.
func languagePrice(overload string) price {
	switch overload {
	case overloads.StartsWithString, overloads.EndsWithString:
		return func(args []ref.Val, _ ref.Val) uint64 { return traversal(sizeOf(args[1])) }
	case overloads.StringToBytes, overloads.BytesToString, overloads.ExtQuoteString, overloads.ExtFormatString:
		return func(args []ref.Val, _ ref.Val) uint64 { return traversal(sizeOf(args[0])) }
	case overloads.InList:
		return func(args []ref.Val, _ ref.Val) uint64 { return sizeOf(args[1]) }
	case overloads.LessString, overloads.GreaterString, overloads.LessEqualsString, overloads.GreaterEqualsString,
		overloads.LessBytes, overloads.GreaterBytes, overloads.LessEqualsBytes, overloads.GreaterEqualsBytes,
		overloads.Equals, overloads.NotEquals:
		return func(args []ref.Val, _ ref.Val) uint64 { return traversal(min(sizeOf(args[0]), sizeOf(args[1]))) }
	case overloads.AddString, overloads.AddBytes:
		return func(args []ref.Val, _ ref.Val) uint64 { return traversal(sizeOf(args[0]) + sizeOf(args[1])) }
	case overloads.Matches, overloads.MatchesString:
		return func(args []ref.Val, _ ref.Val) uint64 {
			// An empty string is not free of cost, the pattern may be long.
			return roundUp((1+float64(sizeOf(args[0])))*common.StringTraversalCostFactor) *
				roundUp(float64(sizeOf(args[1]))*common.RegexStringLengthCostFactor)
		}
	case overloads.ContainsString:
		return func(args []ref.Val, _ ref.Val) uint64 { return traversal(sizeOf(args[0])) * traversal(sizeOf(args[1])) }
	}
	return func([]ref.Val, ref.Val) uint64 { return 1 }
}

// libraryPrice returns the price of a function of the list and set libraries, and nil for all others.
func libraryPrice(overload string) price {
	switch overload {
	case "list_slice", "lists_range", "list_reverse":
		return func(_ []ref.Val, result ref.Val) uint64 { return newList(1, sizeOf(result)) }
	case "list_flatten", "list_flatten_int":
		return func(args []ref.Val, _ ref.Val) uint64 {
			depth := 1.0
			if len(args) == 2 {
				depth = float64(args[1].(types.Int))
			}
			return newList(depth, sizeOf(args[0]))
		}
	case "list_distinct":
		return func(args []ref.Val, _ ref.Val) uint64 { return eachWithEach(args[0]) }
	case "list_sets_contains_list", "list_sets_intersects_list":
		return func(args []ref.Val, _ ref.Val) uint64 { return add(1, sizeOf(args[0])*sizeOf(args[1])) }
	case "list_sets_equivalent_list":
		return func(args []ref.Val, _ ref.Val) uint64 {
			return add(1, uint64(float64(sizeOf(args[0])*sizeOf(args[1]))*2))
		}
	}
	for _, t := range []*types.Type{types.IntType, types.UintType, types.DoubleType, types.BoolType, types.DurationType, types.TimestampType, types.StringType, types.BytesType} {
		switch overload {
		case "list_" + t.TypeName() + "_sort":
			return func(args []ref.Val, _ ref.Val) uint64 { return eachWithEach(args[0]) }
		case "list_" + t.TypeName() + "_sortByAssociatedKeys":
			return func(args []ref.Val, _ ref.Val) uint64 { return eachWithEach(args[1]) }
		}
	}
	return nil
}

// eachWithEach is the price of comparing all elements of a list.
func eachWithEach(v ref.Val) uint64 {
	l := v.(traits.Lister)
	n := sizeOf(l)
	if n == 0 {
		return newList(2, 0)
	}
	each := 2.0
	switch l.Get(types.IntZero).Type() {
	case types.StringType, types.BytesType:
		each += common.StringTraversalCostFactor
	}
	return newList(each, multiply(n, n))
}

// newList returns the price of a list built from a number of elements.
func newList(each float64, n uint64) uint64 {
	if each < 0 {
		each = 1
	}
	return add(add(uint64(float64(n)*each), 1), common.ListCreateBaseCost)
}

// add is a+b, or the largest number.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// multiply is a*b, or the largest number.
func multiply(a, b uint64) uint64 {
	if a == 0 {
		return 0
	}
	if math.MaxUint64/a < b {
		return math.MaxUint64
	}
	return a * b
}

// traversal is the price of going through a text once.
func traversal(size uint64) uint64 { return roundUp(float64(size) * common.StringTraversalCostFactor) }

func roundUp(f float64) uint64 { return uint64(math.Ceil(f)) }

// sizeOf returns the size of a value, and 1 for a value without a size.
func sizeOf(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.Int, types.Bool, types.Double:
		return 1
	case traits.Sizer:
		return uint64(v.Size().(types.Int))
	case *types.Optional:
		if v.HasValue() {
			return sizeOf(v.GetValue())
		}
	}
	return 1
}
