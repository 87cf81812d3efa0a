package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/anykind/anykind/envtest/verify"
)

// A condition is a CEL expression. It can call Kubernetes' functions and objects(apiVersion, kind): the list of the objects of
// a kind.
type condition struct {
	text    string
	program cel.Program
	state   *verify.State      // that holds evaluates
	lists   map[string]ref.Val // of this state, by apiVersion and kind
	found   map[string]bool    // whether there was an object in any state
}

func compile(text string) (*condition, error) {
	c := &condition{text: text, found: map[string]bool{}}
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
		return nil, fmt.Errorf("%s is of type %s, and must be bool: compare it, as in EXPRESSION == true", text, ast.OutputType())
	}
	c.program, err = env.Program(ast, cel.CostLimit(math.MaxUint64)) // the author of the expression waits for it
	return c, err
}

// objects implements the CEL function objects.
func (c *condition) objects(apiVersion, kind ref.Val) ref.Val {
	name := fmt.Sprintf("%s (%s)", kind.Value(), apiVersion.Value())
	if known := c.lists[name]; known != nil {
		return known
	}
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
	c.lists[name] = types.DefaultTypeAdapter.NativeToValue(content)
	c.found[name] = c.found[name] || len(content) > 0
	return c.lists[name]
}

// empty returns the kinds of which there was no object.
func (c *condition) empty() (kinds []string) {
	for _, kind := range slices.Sorted(maps.Keys(c.found)) {
		if !c.found[kind] {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// holds returns an error if the condition is false in a state, or cannot be evaluated.
func (c *condition) holds(s *verify.State) error {
	c.state, c.lists = s, map[string]ref.Val{}
	result, _, err := c.program.Eval(map[string]any{})
	if err == nil && result != types.True {
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
