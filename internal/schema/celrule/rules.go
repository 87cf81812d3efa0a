package celrule

import (
	"context"
	"sync"
	"sync/atomic"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/schema/celprogram"
)

// Rules are the rules of one version of a custom resource. They are read when
// they are first needed, and each is compiled when it is first needed. They may
// be used concurrently.
type Rules struct {
	source func() (*apiextensionsv1.JSONSchemaProps, error)
	shared *Shared

	current atomic.Pointer[tree]
	used    atomic.Bool // since the last DropIdle
	mu      sync.Mutex  // held while reading, so that it is done once
}

// A tree is the schema as it was read.
type tree struct{ root *node } // nil where there are no rules

// New returns the rules of a schema. Rules with the same shared share compiled programs. shared may be
// nil.
func New(props *apiextensionsv1.JSONSchemaProps, shared *Shared) (*Rules, error) {
	r := Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) { return props, nil }, shared)
	_, err := r.tree()
	return r, err
}

// Lazy returns the rules of the schema that source returns, at the first use. Source is called again
// after a Drop; its result is not kept.
func Lazy(source func() (*apiextensionsv1.JSONSchemaProps, error), shared *Shared) *Rules {
	return &Rules{source: source, shared: shared}
}

// Drop drops the compiled rules. The next use compiles them again; it does not affect running
// validations.
func (r *Rules) Drop() { r.current.Store(nil) }

// DropIdle drops the compiled rules if they were not used since the last call.
func (r *Rules) DropIdle() {
	if !r.used.Swap(false) {
		r.Drop()
	}
}

// Compiled reports whether compiled rules are in memory.
func (r *Rules) Compiled() bool {
	t := r.current.Load()
	return t != nil && t.root != nil
}

// Any reports whether there are rules at all.
func (r *Rules) Any() bool {
	t, err := r.tree()
	return err == nil && t.root != nil
}

func (r *Rules) tree() (*tree, error) {
	if !r.used.Load() {
		r.used.Store(true)
	}
	if t := r.current.Load(); t != nil {
		return t, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.current.Load(); t != nil {
		return t, nil
	}
	props, err := r.source()
	if err != nil {
		return nil, err
	}
	t := &tree{}
	if hasRules(props) {
		root, err := builder{r.shared}.root(props)
		if err != nil {
			return nil, err
		}
		if root.ruled && root.self().typed {
			t.root = root
		}
	}
	r.current.Store(t)
	return t, nil
}

// hasRules reports whether there is a rule anywhere outside of junctors.
func hasRules(p *apiextensionsv1.JSONSchemaProps) bool {
	if p == nil {
		return false
	}
	if len(p.XValidations) > 0 || p.Items != nil && hasRules(p.Items.Schema) ||
		p.AdditionalProperties != nil && hasRules(p.AdditionalProperties.Schema) {
		return true
	}
	for name := range p.Properties {
		if sub := p.Properties[name]; hasRules(&sub) {
			return true
		}
	}
	return false
}

// Options of a validation. The zero value is that of a new object.
type Options struct {
	// Update marks an update of old, for which a broken rule of an unchanged value only causes a
	// warning.
	Update bool
	// Budget limits the cost of all evaluations; 0 is ObjectBudget.
	Budget int64
	// Warn receives the broken rules of unchanged values.
	Warn func(message string)
}

// Validate returns the rules that obj breaks. old is the old object for transition rules, or nil. The
// object must be valid by its schema, except for unchanged values.
func (r *Rules) Validate(ctx context.Context, obj, old map[string]any, o Options) field.ErrorList {
	t, err := r.tree()
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if t.root == nil {
		return nil
	}
	budget := o.Budget
	if budget == 0 {
		budget = ObjectBudget
	}
	x := &validation{ctx: ctx, budget: budget, warn: o.Warn, meter: celprogram.Meter{Slots: r.shared.long()}}
	defer x.meter.End()
	x.steps = x.few[:0]
	var c correlation
	var was any
	if old != nil {
		was = old
		if o.Update {
			c.current = pair{t.root, obj, old}
		}
	}
	x.place(t.root, obj, was, c)
	return x.errs
}

// CompileAll compiles what would be compiled when it is needed.
func (r *Rules) CompileAll() {
	if t, err := r.tree(); err == nil && t.root != nil {
		t.root.compileAll()
	}
}

func (n *node) compileAll() {
	if len(n.rules) > 0 {
		_, _ = n.compiledRules() // the error is that of every evaluation
	}
	if n.ruledItems != nil {
		n.ruledItems.compileAll()
	}
	if n.ruledEntries != nil {
		n.ruledEntries.compileAll()
	}
	for _, f := range n.ruledFields {
		f.node.compileAll()
	}
}
