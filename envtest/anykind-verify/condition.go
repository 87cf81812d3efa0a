package main

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/anykind/anykind/envtest/verify"
)

// A condition is an expression of CEL, with Kubernetes' functions and with objects(apiVersion, kind): the objects of a kind
// in the state.
type condition struct {
	text    string
	program cel.Program
	state   *verify.State // of the evaluation
}

func compile(text string) (*condition, error) {
	c := &condition{text: text}
	base, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Env(environment.StoredExpressions)
	if err != nil {
		return nil, err
	}
	env, err := base.Extend(cel.Function("objects", cel.Overload("objects_of_kind",
		[]*cel.Type{cel.StringType, cel.StringType}, cel.ListType(cel.DynType), cel.BinaryBinding(c.objects))))
	if err != nil {
		return nil, err
	}
	ast, issues := env.Compile(text)
	switch {
	case issues.Err() != nil:
		return nil, issues.Err()
	case ast.OutputType() != cel.BoolType:
		return nil, fmt.Errorf("%s is of type %s, and must be bool", text, ast.OutputType())
	}
	c.program, err = env.Program(ast)
	return c, err
}

// objects is the function of CEL.
func (c *condition) objects(apiVersion, kind ref.Val) ref.Val {
	var all unstructured.UnstructuredList
	all.SetAPIVersion(apiVersion.Value().(string))
	all.SetKind(kind.Value().(string) + "List")
	if err := c.state.List(&all); err != nil {
		return types.WrapErr(err)
	}
	content := make([]any, len(all.Items))
	for i, u := range all.Items {
		content[i] = u.Object
	}
	return types.DefaultTypeAdapter.NativeToValue(content)
}

// holds returns an error if the condition is false in a state, or cannot be evaluated.
func (c *condition) holds(s *verify.State) error {
	c.state = s
	result, _, err := c.program.Eval(map[string]any{})
	if err != nil {
		return err
	}
	is, err := result.ConvertToNative(reflect.TypeFor[bool]())
	if err == nil && is != true {
		err = errors.New("false")
	}
	return err
}

// compileAll compiles the expressions of a flag.
func compileAll(flag string, texts []string) (all []*condition, err error) {
	for _, text := range texts {
		c, err := compile(text)
		if err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		all = append(all, c)
	}
	return all, nil
}
