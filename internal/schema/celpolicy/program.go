package celpolicy

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/anykind/anykind/internal/schema/celprogram"
)

// A Program is a compiled expression, or the error of compiling it.
type Program struct {
	text    string
	program *celprogram.Program
	err     *apiservercel.Error
}

// Text returns the expression.
func (p *Program) Text() string { return p.text }

// Err returns the error of compiling the expression, or nil.
func (p *Program) Err() *apiservercel.Error { return p.err }

// Program compiles a stored expression for evaluation. Equal programs in use are shared.
func (c *Compiler) Program(e Expression) *Program {
	key := programKey{e.Text, fmt.Sprint(e.Returns), e.Declared}
	if known := c.shared.Get(key); known != nil {
		return known
	}
	p, _ := c.program(e)
	return c.shared.Put(key, p)
}

// StoredVariable compiles the expression of a variable, so that expressions after it may use it
// and evaluations know its value.
func (c *Compiler) StoredVariable(name string, e Expression) {
	p, t := c.program(e)
	c.variables.Fields[name] = apiservercel.NewDeclField(name, declType(t), true, nil, nil)
	if c.positions == nil {
		c.positions = map[string]int{}
	}
	if at, ok := c.positions[name]; ok { // only possible in unchecked policies
		c.stored[at].program = p
		return
	}
	c.positions[name] = len(c.stored)
	c.stored = append(c.stored, storedVariable{name, p})
}

func (c *Compiler) program(e Expression) (*Program, *cel.Type) {
	e.Stored = true
	p := &Program{text: e.Text}
	env, ast, err := c.check(e)
	if p.err = err; err != nil {
		return p, nil
	}
	l, problem := languageOf(e.Declared)
	if problem == nil {
		p.program, problem = l.Program(env, ast)
	}
	if problem != nil {
		p.err = failed(apiservercel.ErrorTypeInternal, "program instantiation failed: %v", problem)
		return p, nil
	}
	return p, ast.OutputType()
}

// languages have the functions of evaluated expressions, without and with those of mutations. They do
// not depend on variables.
var languages = [2]func() (*celprogram.Language, error){
	sync.OnceValues(func() (*celprogram.Language, error) { return newLanguage(Declared{}) }),
	sync.OnceValues(func() (*celprogram.Language, error) { return newLanguage(Declared{Patches: true}) }),
}

func newLanguage(d Declared) (*celprogram.Language, error) {
	set, err := plain.language(d)
	if err != nil {
		return nil, err
	}
	return celprogram.NewLanguage(set.StoredExpressionsEnv())
}

func languageOf(d Declared) (*celprogram.Language, error) {
	if d.Patches {
		return languages[1]()
	}
	return languages[0]()
}
