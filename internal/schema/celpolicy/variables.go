package celpolicy

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// A stored variable is a variable with its compiled expression.
type storedVariable struct {
	name    string
	program *Program
}

// variables are the values of the variables in an Evaluation. Each is evaluated at its first use.
type variables struct {
	of     *Evaluation
	values []ref.Val // by the position in the Compiler
}

// values returns the variables of an evaluation.
func (x *Evaluation) values() ref.Val {
	if x.variables.of == nil {
		x.variables = variables{of: x, values: make([]ref.Val, len(x.compiler.stored))}
	}
	return &x.variables
}

// value evaluates a variable. This happens inside the evaluation of another expression.
func (v *variables) value(at int) ref.Val {
	stored := v.of.compiler.stored[at]
	switch known := v.values[at]; {
	case known == v: // only possible in unchecked expressions
		return types.NewErr("composited variable %q depends on itself", stored.name)
	case known != nil:
		return known
	}
	v.values[at] = v // until it has a value
	v.values[at] = v.of.variable(stored)
	return v.values[at]
}

func (x *Evaluation) variable(v storedVariable) ref.Val {
	if v.program.err != nil {
		return types.NewErr("composited variable %q fails to compile: %v", v.name, v.program.err)
	}
	value, cost, err := x.about.Common.eval(x.ctx, v.program.program, x)
	x.spent += int64(min(cost, math.MaxInt64))
	if err != nil {
		return types.NewErr("composited variable %q fails to evaluate: %v", v.name, err)
	}
	return value
}

// Find returns the value of a variable.
func (v *variables) Find(key ref.Val) (ref.Val, bool) {
	text, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), true
	}
	name := string(text)
	if strings.Contains(name, "__") {
		if name, ok = apiservercel.Unescape(name); !ok {
			return nil, false
		}
	}
	at, ok := v.of.compiler.positions[name]
	if !ok {
		return nil, false
	}
	return v.value(at), true
}

// Get returns the value of a variable, or an error.
func (v *variables) Get(key ref.Val) ref.Val {
	if value, ok := v.Find(key); ok {
		return value
	}
	return types.ValOrErr(key, "no such key: %v", key)
}

// Contains reports whether there is a variable.
func (v *variables) Contains(key ref.Val) ref.Val {
	value, ok := v.Find(key)
	if value != nil && types.IsUnknownOrError(value) {
		return value
	}
	return types.Bool(ok)
}

// Size returns the number of variables.
func (v *variables) Size() ref.Val { return types.Int(len(v.values)) }

// Iterator returns the values in the order of the policy.
func (v *variables) Iterator() traits.Iterator {
	for at := range v.values {
		v.value(at)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, v.values).Iterator()
}

// Equal reports whether the other value are the same variables.
func (v *variables) Equal(other ref.Val) ref.Val {
	o, ok := other.(*variables)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Bool(v == o)
}

// Type returns the type of the variables.
func (v *variables) Type() ref.Type { return v.of.compiler.typeOfVariables }

// ConvertToType converts to the type, and to the type of types.
func (v *variables) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case v.Type():
		return v
	case types.TypeType:
		return v.of.compiler.typeOfVariables
	}
	return types.NewErr("disallowed conversion from %q to %q", v.Type().TypeName(), t.TypeName())
}

// ConvertToNative fails: expressions cannot return all variables.
func (v *variables) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("disallowed conversion from %q to %q", v.Type().TypeName(), t.Name())
}

// Value fails, as ConvertToNative does.
func (v *variables) Value() any { return types.NoSuchOverloadErr() }
