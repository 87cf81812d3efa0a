package admissionregistration

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/schema/celpolicy"
)

// expressions are the settings for the expressions of an object: their environment, and the stored
// expressions.
type expressions struct {
	compiler   *celpolicy.Compiler
	params     bool
	compatible gate.Release

	conditions, validations, messages, annotations, patches sets.Set[string]
}

func textsOf[T any](list []T, text func(T) string) sets.Set[string] {
	out := sets.New[string]()
	for _, e := range list {
		out.Insert(text(e))
	}
	return out
}

func condition(m admissionv1.MatchCondition) string { return m.Expression }

func blank(text string) bool { return strings.TrimSpace(text) == "" }

func (x expressions) declared() celpolicy.Declared {
	return celpolicy.Declared{Params: x.params, Authorizer: true, Compatible: x.compatible}
}

func (x expressions) ofValidation(text string) celpolicy.Expression {
	return celpolicy.Expression{Text: text, Declared: x.declared(), Stored: x.validations.Has(text), Returns: []*cel.Type{cel.BoolType}}
}

func (x expressions) ofMessage(text string) celpolicy.Expression {
	return celpolicy.Expression{
		Text: text, Declared: celpolicy.Declared{Params: x.params, Compatible: x.compatible}, Stored: x.messages.Has(text), Returns: []*cel.Type{cel.StringType},
	}
}

func (x expressions) ofAnnotation(text, whole string) celpolicy.Expression {
	return celpolicy.Expression{
		Text: text, Declared: x.declared(), Stored: x.annotations.Has(whole), Returns: []*cel.Type{cel.StringType, cel.NullType},
	}
}

// condition compiles a match condition. It has no variables, and errors show it without surrounding
// space.
func (x expressions) condition(c *rule.Check, text string) {
	x.compiler = celpolicy.Plain()
	text = strings.TrimSpace(text)
	x.compile(c, text, celpolicy.Expression{
		Text: text, Declared: x.declared(), Stored: x.conditions.Has(text), Returns: []*cel.Type{cel.BoolType},
	})
}

// validatePatch compiles an expression that returns a patch.
func validatePatch(c *rule.Check, text string, say expressions, makes *cel.Type) {
	if blank(text) {
		c.Required("")
		return
	}
	declared := say.declared()
	declared.Patches = true
	trimmed := strings.TrimSpace(text)
	say.compile(c, trimmed, celpolicy.Expression{Text: trimmed, Declared: declared, Stored: say.patches.Has(text), Returns: []*cel.Type{makes}})
}

// compile reports the errors of an expression, with the expression as in the object.
func (x expressions) compile(c *rule.Check, shown string, e celpolicy.Expression) {
	_, err := x.compiler.Compile(e)
	report(c, shown, err)
}

func report(c *rule.Check, shown string, err *apiservercel.Error) {
	switch {
	case err == nil:
	case err.Type == apiservercel.ErrorTypeInvalid:
		c.Invalid(shown, err.Detail)
	default:
		c.Add(field.InternalError(c.Path(), err))
	}
}

// identifier matches names of variables, also reserved words.
var identifier = rule.Pattern("^[_a-zA-Z][_a-zA-Z0-9]*$")

var reserved = strings.Fields("true false null in as break const continue else for function if import let loop package namespace return var void while")

func validateVariables(c *rule.Check, variables []admissionv1.Variable, say expressions) {
	for i, v := range variables {
		name, text := c.At(i, "name"), c.At(i, "expression")
		switch {
		case blank(v.Name):
			name.Required("name is not specified")
		case !identifier().MatchString(v.Name) || slices.Contains(reserved, v.Name):
			name.Invalid(v.Name, "must be a valid CEL identifier")
		}
		if blank(v.Expression) {
			text.Required("expression is not specified")
			continue
		}
		report(text, v.Expression, say.compiler.Variable(v.Name, celpolicy.Expression{
			Text: v.Expression, Declared: say.declared(), Stored: say.validations.Has(v.Expression),
		}))
	}
}
