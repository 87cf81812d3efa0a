// Package celpolicy compiles and evaluates the expressions of admission webhooks and admission
// policies.
//
// It knows the variables of an expression, its result types, and the cost limits of evaluations. It
// does not know the objects that contain expressions, or the order of evaluation.
package celpolicy

import (
	"cmp"
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/mutation"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/intern"
)

// Declared lists the optional variables and types of an expression.
type Declared struct {
	// Params are the parameters of a policy.
	Params bool
	// Authorizer answers what users may do.
	Authorizer bool
	// Patches declares the types of mutations.
	Patches bool
	// Compatible is the release of the oldest server that must understand the expression; 0 for the previous release.
	Compatible gate.Release
}

// An Expression is an expression to compile.
type Expression struct {
	Text string
	Declared
	// Stored marks an expression that was accepted before. It may use features that a compatible server does not
	// understand.
	Stored bool
	// Returns are the types that it may have, none for any.
	Returns []*cel.Type
}

// The types of mutations.
var (
	ObjectType    = cel.ObjectType(mutation.ObjectTypeName)
	JSONPatchType = cel.ListType(cel.ObjectType(mutation.JSONPatchTypeName))
)

// A Compiler compiles the expressions of one policy, or of any object without variables.
type Compiler struct {
	mu sync.Mutex
	// variables is the type of the policy's variables, nil for none.
	variables *apiservercel.DeclType
	languages map[Declared]*environment.EnvSet
	// stored are the compiled variables, in the order of the policy, and positions are their places by name.
	stored          []storedVariable
	positions       map[string]int
	typeOfVariables *types.Type
	// shared has all other programs in use.
	shared intern.Table[programKey, Program]
}

// plain has the languages that know no variables. They are the same for all.
var plain = &Compiler{languages: map[Declared]*environment.EnvSet{}}

// Plain returns a Compiler of expressions that use no variables of a policy.
func Plain() *Compiler { return plain }

// WithVariables returns a Compiler for a policy with variables, which Variable adds.
func WithVariables() *Compiler {
	const name = "kubernetes.variables"
	return &Compiler{
		variables:       apiservercel.NewObjectType(name, map[string]*apiservercel.DeclField{}),
		typeOfVariables: cel.ObjectType(name, traits.IndexerType|traits.FieldTesterType|traits.IterableType),
		languages:       map[Declared]*environment.EnvSet{},
	}
}

// Variable compiles the expression of a variable. The expressions after it may use it,
// with the type that it has, or with any if it does not compile.
func (c *Compiler) Variable(name string, e Expression) *apiservercel.Error {
	t, err := c.Compile(e)
	c.variables.Fields[name] = apiservercel.NewDeclField(name, declType(t), true, nil, nil)
	return err
}

// Compile compiles an expression and returns its type.
func (c *Compiler) Compile(e Expression) (*cel.Type, *apiservercel.Error) {
	env, ast, err := c.check(e)
	if err != nil {
		return nil, err
	}
	if _, err := env.Program(ast); err != nil {
		return nil, failed(apiservercel.ErrorTypeInternal, "program instantiation failed: %v", err)
	}
	return ast.OutputType(), nil
}

// check returns the checked expression and its environment.
func (c *Compiler) check(e Expression) (*cel.Env, *cel.Ast, *apiservercel.Error) {
	set, err := c.language(e.Declared)
	if err != nil {
		return nil, nil, failed(apiservercel.ErrorTypeInternal, "unexpected error loading CEL environment: %v", err)
	}
	env := set.NewExpressionsEnv()
	if e.Stored {
		env = set.StoredExpressionsEnv()
	}
	ast, issues := env.Compile(e.Text)
	if issues != nil {
		return nil, nil, failed(apiservercel.ErrorTypeInvalid, "compilation failed: %s", issues)
	}
	return env, ast, e.mayReturn(ast.OutputType())
}

func (e Expression) mayReturn(t *cel.Type) *apiservercel.Error {
	for _, r := range e.Returns {
		if t.IsExactType(r) {
			return nil
		}
	}
	switch len(e.Returns) {
	case 0:
		return nil
	case 1:
		return failed(apiservercel.ErrorTypeInvalid, "must evaluate to %v but got %v", e.Returns[0], t)
	}
	return failed(apiservercel.ErrorTypeInvalid, "must evaluate to one of %v but got %v", e.Returns, t)
}

func failed(t apiservercel.ErrorType, format string, args ...any) *apiservercel.Error {
	return &apiservercel.Error{Type: t, Detail: fmt.Sprintf(format, args...)}
}

// language returns the environments for expressions, created at their first use.
func (c *Compiler) language(d Declared) (*environment.EnvSet, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if set := c.languages[d]; set != nil {
		return set, nil
	}
	set := environment.MustBaseEnvSet(version.MajorMinor(1, uint(cmp.Or(d.Compatible, gate.Current-1))))
	var steps []environment.VersionedOptions
	if c.variables != nil {
		steps = append(steps, always([]*apiservercel.DeclType{c.variables}, cel.Variable("variables", c.variables.CelType())))
	}
	steps = append(steps, ofRequests(d))
	if d.Patches {
		steps = append(steps, always(nil, common.ResolverEnvOption(&mutation.DynamicTypeResolver{}), environment.UnversionedLib(library.JSONPatch)))
	}
	for _, step := range steps {
		var err error
		if set, err = set.Extend(step); err != nil {
			return nil, err
		}
	}
	c.languages[d] = set
	return set, nil
}

// always returns the options of every version.
func always(types []*apiservercel.DeclType, options ...cel.EnvOption) environment.VersionedOptions {
	return environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: options, DeclTypes: types}
}

// ofRequests declares what there is in every admission request.
func ofRequests(d Declared) environment.VersionedOptions {
	namespace, request := namespaceType(), requestType()
	options := []cel.EnvOption{
		cel.Variable("object", cel.DynType),
		cel.Variable("oldObject", cel.DynType),
		cel.Variable("namespaceObject", namespace.CelType()),
		cel.Variable("request", request.CelType()),
	}
	if d.Params {
		options = append(options, cel.Variable("params", cel.DynType))
	}
	if d.Authorizer {
		options = append(options,
			cel.Variable("authorizer", library.AuthorizerType),
			cel.Variable("authorizer.requestResource", library.ResourceCheckType))
	}
	return always([]*apiservercel.DeclType{namespace, request}, options...)
}
