package celpolicy

import (
	"fmt"
	"maps"
	"strings"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	"k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/view"
)

// A Type is a kind of objects that expressions may use, with its schema.
type Type struct {
	Kind     schema.GroupVersionKind
	declared *apiservercel.DeclType
}

// TypeOf returns the Type of a kind whose objects have a model.
func TypeOf(kind schema.GroupVersionKind, model view.Model) Type {
	t := Type{Kind: kind}
	s := expanded(model.Schemas, map[string]bool{model.Name: true}, model.Schemas[model.Name])
	t.declared = common.SchemaDeclType(&openapi.Schema{Schema: s}, true)
	return t
}

// named returns the type with a unique name, nil for none. Expressions must not refer to the name, so
// no kind has it: its number distinguishes the types of one environment.
func (t *Type) named(number int) *apiservercel.DeclType {
	if t.declared == nil {
		return nil
	}
	return t.declared.MaybeAssignTypeName(fmt.Sprint(t.Kind.Kind, number))
}

// expanded returns a schema with its references resolved. A recursive reference becomes an arbitrary
// object.
func expanded(all map[string]*spec.Schema, within map[string]bool, s *spec.Schema) *spec.Schema {
	if s == nil {
		return &spec.Schema{}
	}
	if name := referred(s); name != "" {
		if within[name] {
			return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
		}
		within[name] = true
		defer delete(within, name)
		if s = all[name]; s == nil {
			return &spec.Schema{}
		}
	}
	out := *s
	if len(s.Properties) > 0 {
		out.Properties = maps.Clone(s.Properties)
		for name, p := range s.Properties {
			out.Properties[name] = *expanded(all, within, &p)
		}
	}
	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: a.Allows, Schema: expanded(all, within, a.Schema)}
	}
	if s.Items != nil && s.Items.Schema != nil {
		out.Items = &spec.SchemaOrArray{Schema: expanded(all, within, s.Items.Schema)}
	}
	return &out
}

// referred is the name of the schema that s refers to, "" for none.
func referred(s *spec.Schema) string {
	ref := s.Ref.String()
	for i := range s.AllOf {
		if ref == "" {
			ref = s.AllOf[i].Ref.String()
		}
	}
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// A TypeChecker finds errors in the expressions of a policy for the kinds of objects that it matches.
// Its results are warnings.
type TypeChecker struct {
	languages []typedLanguage
}

type typedLanguage struct {
	kind schema.GroupVersionKind
	env  *cel.Env
}

// NewTypeChecker returns a TypeChecker of a policy with variables. hasParams declares params, with the
// type params as far as it is known.
func NewTypeChecker(types []Type, hasParams bool, params Type, variables []admissionregistrationv1.Variable) (*TypeChecker, error) {
	c := &TypeChecker{}
	for _, t := range types {
		env, err := typedEnv(t, hasParams, params, variables)
		if err != nil {
			return nil, err
		}
		c.languages = append(c.languages, typedLanguage{t.Kind, env})
	}
	return c, nil
}

// Check returns the errors of an expression, "" for none: for each kind, a line and the compiler's
// messages.
func (c *TypeChecker) Check(expression string) string {
	var all []string
	for _, l := range c.languages {
		if _, issues := l.env.Compile(expression); issues != nil {
			all = append(all, fmt.Sprintf("%v: %s\n", l.kind, issues.String()))
		}
	}
	return strings.Join(all, "\n")
}

// typedEnv returns the language of a policy for objects of one kind.
func typedEnv(of Type, hasParams bool, params Type, variables []admissionregistrationv1.Variable) (*cel.Env, error) {
	namespace, request := namespaceType(), requestType()
	types := []*apiservercel.DeclType{namespace, request}
	options := []cel.EnvOption{
		cel.Variable("namespaceObject", namespace.CelType()), cel.Variable("request", request.CelType()),
		cel.Variable("authorizer", library.AuthorizerType),
	}
	declare := func(t *apiservercel.DeclType, names ...string) {
		known := cel.DynType
		if t != nil {
			known = t.CelType()
			types = append(types, t)
		}
		for _, name := range names {
			options = append(options, cel.Variable(name, known))
		}
	}
	declare(of.named(1), "object", "oldObject")
	if hasParams {
		declare(params.named(2), "params")
	}
	all := apiservercel.NewObjectType("kubernetes.variables", map[string]*apiservercel.DeclField{})
	set := environment.MustBaseEnvSet(version.MajorMinor(1, uint(gate.Current)))
	for _, step := range []environment.VersionedOptions{always(types, options...), always([]*apiservercel.DeclType{all}, cel.Variable("variables", all.CelType()))} {
		var err error
		if set, err = set.Extend(step); err != nil {
			return nil, err
		}
	}
	env := set.StoredExpressionsEnv()
	for _, v := range variables {
		var t *cel.Type
		if ast, issues := env.Compile(v.Expression); issues == nil {
			t = ast.OutputType()
		}
		all.Fields[v.Name] = apiservercel.NewDeclField(v.Name, declType(t), true, nil, nil)
	}
	return env, nil
}
