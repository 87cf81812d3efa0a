package celrule

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/anykind/anykind/internal/object/gate"
)

// CheckOptions are the options of Check.
type CheckOptions struct {
	// Broken has the paths of schemas with errors. Their rules are skipped, and those of the schemas around them.
	Broken []string
	// Stored and StoredMessage report whether a rule or a messageExpression was stored before, and so
	// may use newer features. They may be nil.
	Stored, StoredMessage func(expression string) bool
	// Compatible is the release of the oldest server that must understand all other expressions; 0 for the previous
	// release.
	Compatible gate.Release
	// AnyRuleCost accepts rules beyond the limit for one rule: the stored schema has them too. The
	// limit for all rules still applies.
	AnyRuleCost bool
}

// An Estimate is the estimated worst-case cost of an expression.
type Estimate struct {
	// Path of the expression in the schema.
	Path       *field.Path
	Expression string
	// Cost for one object: Each times Times.
	Cost, Each, Times uint64
	// Limit of the cost.
	Limit uint64

	// Data for finding bounds.
	one   *estimate
	at    *field.Path // of the schema that the rule is of
	root  *node       // the type of that schema
	open  []Bound     // missing bounds of the values around it
	known uint64      // number of its evaluations by the bounded values around it
}

// A Report is the result of Check.
type Report struct {
	Errors    field.ErrorList
	Estimates []Estimate
	// Total is the estimated cost of all expressions for one object, at most SchemaCostLimit.
	Total uint64
}

// Check checks the rules of a schema that has passed as structural and whose
// place is at.
func Check(props *apiextensionsv1.JSONSchemaProps, at *field.Path, o CheckOptions) *Report {
	none := func(string) bool { return false }
	if o.Stored == nil {
		o.Stored = none
	}
	if o.StoredMessage == nil {
		o.StoredMessage = none
	}
	o.Compatible = cmp.Or(o.Compatible, gate.Current-1)
	c := &check{CheckOptions: o, report: &Report{}}
	if !hasRules(props) {
		return c.report
	}
	c.schema(props, at, &place{root: true, bounded: true, times: 1, known: 1})
	c.total(at)
	return c.report
}

type check struct {
	CheckOptions
	report *Report
	costs  []Estimate // the most expensive
}

// A place is the context of a schema: everything on which its rules depend besides the schema.
type place struct {
	root bool
	at   *field.Path
	// scoped reports rules here or above, so that the type of the place is part of the compiled rules.
	scoped bool
	node   *node // its type, nil if it is not known yet
	err    error // reason for a missing node

	// times is the maximum number of values of the place in an object, if bounded.
	bounded bool
	times   uint64
	// open are the lists and maps above that have no limit.
	open  []Bound
	known uint64 // times, without the factors of unlimited lists and maps
	// noOld is the outermost list above whose elements have no old ones.
	noOld *field.Path
}

// schema checks the rules below a schema, then its own.
func (c *check) schema(p *apiextensionsv1.JSONSchemaProps, at *field.Path, in *place) {
	if p == nil || !hasRules(p) {
		return
	}
	in.at = at
	if len(p.XValidations) > 0 {
		in.scoped = true
	}
	if in.scoped && in.node == nil && in.err == nil {
		c.typePlace(p, in)
	}
	below := place{scoped: in.scoped, err: in.err, noOld: in.noOld}
	in.elements(p, at, &below)
	child := func(n *node) *place {
		sub := below
		if n != nil && sub.err == nil {
			sub.node = n.seen()
		}
		return &sub
	}
	if a := p.AdditionalProperties; a != nil {
		var n *node
		if in.node != nil {
			n = in.node.additional
		}
		c.schema(a.Schema, at.Child("additionalProperties"), child(n))
	}
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		var n *node
		if in.node != nil {
			if escaped, ok := apiservercel.Escape(name); ok {
				n = in.node.declared(escaped)
			}
		}
		sub := p.Properties[name]
		c.schema(&sub, at.Child("properties").Key(name), child(n))
	}
	if p.Items != nil {
		var n *node
		if in.node != nil {
			n = in.node.items
		}
		sub := child(n)
		if sub.noOld == nil && (p.XListType == nil || *p.XListType != "map") {
			sub.noOld = at
		}
		c.schema(p.Items.Schema, at.Child("items"), sub)
	}
	if len(p.XValidations) > 0 && !c.brokenAt(at.String()) {
		c.rules(p, at.Child("x-kubernetes-validations"), in)
	}
}

// typePlace finds the type of a place that cannot be reached from above.
func (c *check) typePlace(p *apiextensionsv1.JSONSchemaProps, in *place) {
	n, err := builder{}.build(p, in.root)
	if err == nil && !n.self().typed {
		err = fmt.Errorf("unable to convert structural schema to CEL declarations")
	}
	if err != nil {
		in.err = err
		return
	}
	in.node = n.self()
}

// elements sets the bounds of below, the context of the elements of a list or a map.
func (in *place) elements(p *apiextensionsv1.JSONSchemaProps, at *field.Path, below *place) {
	below.bounded, below.times, below.open, below.known = in.bounded, in.times, in.open, in.known
	var limit *int64
	var keyword string
	switch {
	case p.Type == "object" && p.AdditionalProperties != nil:
		limit, keyword = p.MaxProperties, "maxProperties"
	case p.Type == "array":
		limit, keyword = p.MaxItems, "maxItems"
	default:
		return
	}
	if limit == nil {
		below.bounded = false
		below.open = append(slices.Clip(in.open), Bound{Path: at, Keyword: keyword})
		return
	}
	n := uint64(max(*limit, 0))
	below.times, below.known = multiply(in.times, n), multiply(in.known, n)
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

// brokenAt reports whether the schema at a path has errors.
func (c *check) brokenAt(path string) bool {
	return slices.ContainsFunc(c.Broken, func(broken string) bool {
		rest, ok := strings.CutPrefix(broken, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

func (c *check) fail(err *field.Error) { c.report.Errors = append(c.report.Errors, err) }

// rules compiles the rules of a schema at at.
func (c *check) rules(p *apiextensionsv1.JSONSchemaProps, at *field.Path, in *place) {
	if in.err != nil {
		c.fail(field.InternalError(at, fmt.Errorf("internal error: failed to construct type information for x-kubernetes-validations rules: %s", in.err)))
		return
	}
	rules := make([]*rule, len(p.XValidations))
	for i := range rules {
		rules[i] = &rule{ValidationRule: p.XValidations[i]}
	}
	compiler := &compiler{node: in.node, stored: c.Stored, storedMessage: c.StoredMessage, compatible: c.Compatible, estimate: true}
	all, err := compiler.all(rules)
	if err != nil {
		c.fail(field.InternalError(at, err))
		return
	}
	for i, r := range all {
		c.rule(&p.XValidations[i], r, at.Index(i), in)
	}
}

// rule adds the errors of a compiled rule.
func (c *check) rule(r *apiextensionsv1.ValidationRule, out *compiled, at *field.Path, in *place) {
	times := in.times
	if !in.bounded {
		times = in.node.repeats()
	}
	c.cost("estimated rule cost", Estimate{
		Path: at.Child("rule"), Expression: r.Rule, Times: times,
		one: out.cost, root: in.node, at: in.at, open: in.open, known: in.known,
	})
	if out.err != nil {
		c.fail(field.Invalid(at.Child("rule"), shownRule(*r), out.err.Detail))
	}
	switch message := at.Child("messageExpression"); {
	case out.messageErr != nil:
		c.fail(field.Invalid(message, shownRule(*r), out.messageErr.Detail))
	case out.message != nil:
		c.cost("estimated messageExpression cost", Estimate{
			Path: message, Expression: r.MessageExpression, Times: 1,
			one: out.messageCost, root: in.node, at: in.at, known: 1,
		})
	}
	switch {
	case out.usesOld && in.noOld != nil:
		c.fail(field.Invalid(at.Child("rule"), r.Rule, fmt.Sprintf("oldSelf cannot be used on the uncorrelatable portion of the schema within %v", in.noOld)))
	case !out.usesOld && r.OptionalOldSelf != nil:
		c.fail(field.Invalid(at.Child("optionalOldSelf"), *r.OptionalOldSelf, "may not be set if oldSelf is not used in rule"))
	}
}

// shownRule is a rule in an error message, with the field names of messages.
type shownRule struct {
	Rule              string
	Message           string
	MessageExpression string
	Reason            *apiextensionsv1.FieldValueErrorReason
	FieldPath         string
	OptionalOldSelf   *bool
}
