package celrule

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/schema/celprogram"
)

// language returns the environment of new or of stored expressions. Servers of the compatible release understand new
// ones.
func language(stored bool, compatible gate.Release) *cel.Env {
	set := environment.MustBaseEnvSet(version.MajorMinor(1, uint(compatible)))
	if stored {
		return set.StoredExpressionsEnv()
	}
	return set.NewExpressionsEnv()
}

// languages create the programs of new and of stored rules.
var languages = [2]func() (*celprogram.Language, error){
	sync.OnceValues(func() (*celprogram.Language, error) { return celprogram.NewLanguage(language(false, gate.Current-1)) }),
	sync.OnceValues(func() (*celprogram.Language, error) { return celprogram.NewLanguage(language(true, gate.Current)) }),
}

// newProgram creates the program of an expression of language(stored, compatible).
func newProgram(stored bool, compatible gate.Release, checked *cel.Ast) (*celprogram.Program, error) {
	at := 0
	if stored || compatible == gate.Current {
		at = 1
	}
	l, err := languages[at]()
	if err != nil {
		return nil, err
	}
	return l.Program(language(stored, compatible), checked)
}

// programs are the compiled rules of a node.
type programs struct {
	once    sync.Once
	all     []*compiled
	usesOld bool // by some rule
	err     error
}

// compiled is a compiled rule.
type compiled struct {
	// program is nil where the rule is empty or does not compile.
	program *celprogram.Program
	message *celprogram.Program // nil without a messageExpression
	usesOld bool
	// cost and messageCost are the worst-case costs of one evaluation, if estimated.
	cost, messageCost *estimate
	err               *apiservercel.Error
	messageErr        *apiservercel.Error
}

// compiledRules returns the programs of the rules of n and compiles them if need
// be.
func (n *node) compiledRules() ([]*compiled, error) {
	p := n.programs
	p.once.Do(func() {
		c := &compiler{
			node: n.typedAs(), compatible: gate.Current,
			stored: func(string) bool { return true }, storedMessage: func(string) bool { return true },
		}
		p.all, p.err = c.all(n.rules)
		p.usesOld = slices.ContainsFunc(p.all, func(c *compiled) bool { return c.usesOld })
	})
	return p.all, p.err
}

// A compiler compiles the expressions of one node.
type compiler struct {
	node *node
	// stored and storedMessage report expressions that an older server need not understand.
	stored        func(rule string) bool
	storedMessage func(expression string) bool
	// compatible is the release of the oldest server that understands all other expressions.
	compatible gate.Release
	// estimate turns on cost estimation.
	estimate bool

	name string
	envs [4]*cel.Env
}

func (c *compiler) all(rules []*rule) ([]*compiled, error) {
	if !c.node.typed {
		return nil, fmt.Errorf("failed to convert to declType for CEL validation rules")
	}
	// Expressions must not refer to the name, so it changes with the schema.
	c.name = fmt.Sprintf("selfType%d", binary.BigEndian.Uint32(c.node.sum[:])%1_000_000_000)
	out := make([]*compiled, len(rules))
	for i, r := range rules {
		var err error
		if out[i], err = c.rule(r); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// env returns the environment of an expression.
func (c *compiler) env(stored, optionalOld bool) (*cel.Env, error) {
	at := 0
	if stored {
		at |= 1
	}
	if optionalOld {
		at |= 2
	}
	if c.envs[at] != nil {
		return c.envs[at], nil
	}
	base := language(stored, c.compatible)
	types, err := newProvider(base.CELTypeProvider(), c.name, c.node)
	if err != nil {
		return nil, err
	}
	options := append(c.node.variables(c.name, optionalOld), cel.CustomTypeProvider(types))
	c.envs[at], err = base.Extend(options...)
	return c.envs[at], err
}

// rule compiles one rule. An error means that no rule of the node can be compiled.
func (c *compiler) rule(r *rule) (*compiled, error) {
	out := &compiled{}
	if strings.TrimSpace(r.Rule) == "" {
		return out, nil
	}
	env, err := c.env(c.stored(r.Rule), r.optionalOld())
	if err != nil {
		return nil, err
	}
	stored := c.stored(r.Rule)
	ast, issues := env.Compile(r.Rule)
	switch {
	case issues != nil:
		out.err = invalid("compilation failed: " + issues.String())
		return out, nil
	case ast.OutputType() != cel.BoolType:
		out.err = invalid("cel expression must evaluate to a bool")
		return out, nil
	}
	for _, ref := range ast.NativeRep().ReferenceMap() {
		if ref.Name == oldSelfName {
			out.usesOld = true
		}
	}
	program, err := newProgram(stored, c.compatible, ast)
	if err != nil {
		out.err = invalid("program instantiation failed: " + err.Error())
		return out, nil
	}
	if out.cost, err = c.cost(env, ast); err != nil {
		out.err = &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: "cost estimation failed: " + err.Error()}
		return out, nil
	}
	out.program = program
	return out, c.message(r, out)
}

// message compiles the messageExpression of a rule.
func (c *compiler) message(r *rule, out *compiled) error {
	if r.MessageExpression == "" {
		return nil
	}
	stored := c.storedMessage(r.MessageExpression)
	env, err := c.env(stored, r.optionalOld())
	if err != nil {
		return err
	}
	ast, issues := env.Compile(r.MessageExpression)
	switch {
	case issues != nil:
		out.messageErr = invalid("messageExpression compilation failed: " + issues.String())
		return nil
	case ast.OutputType() != cel.StringType:
		out.messageErr = invalid("messageExpression must evaluate to a string")
		return nil
	}
	program, err := newProgram(stored, c.compatible, ast)
	if err != nil {
		out.messageErr = invalid("messageExpression instantiation failed: " + err.Error())
		return nil
	}
	if out.messageCost, err = c.cost(env, ast); err != nil {
		out.messageErr = &apiservercel.Error{Type: apiservercel.ErrorTypeInternal, Detail: "cost estimation failed for messageExpression: " + err.Error()}
		return nil
	}
	out.message = program
	return nil
}

func (c *compiler) cost(env *cel.Env, ast *cel.Ast) (*estimate, error) {
	if !c.estimate {
		return nil, nil
	}
	return newEstimate(env, ast, c.node)
}

func invalid(detail string) *apiservercel.Error {
	return &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: detail}
}

// element returns the node of the elements of a list or a map, or nil.
func (n *node) element() *node {
	switch {
	case n.kind == listKind:
		return n.items
	case n.kind == objectKind:
		return n.additional
	default:
		return nil
	}
}
