package conversion

import (
	"encoding/json"
	"fmt"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Report has the findings of Compile.
type Report struct {
	Errors field.ErrorList
	// Unmapped are fields without a rule that the other version does not have. They are errors, unless the
	// rules allow them.
	Unmapped field.ErrorList
	Warnings []string
	// Pairs say for each spoke whether its conversions keep all values.
	Pairs []Pair

	failClosed bool // see Broken
}

// Broken returns an error if conversions must fail: the rules do not fit the schemas, or a field has no
// rule and the rules say to fail then.
func (r *Report) Broken() error {
	if r.failClosed {
		return r.Refused().ToAggregate()
	}
	return r.Errors.ToAggregate()
}

// Refused returns the errors for which new rules are refused.
func (r *Report) Refused() field.ErrorList { return append(slices.Clone(r.Errors), r.Unmapped...) }

// A Pair says which directions between the hub and a spoke keep all values.
type Pair struct {
	Version            string
	ToSpoke, ToHub     bool
	Rules              []Verdict
	MissHub, MissSpoke []string // fields without a rule
}

// A Verdict is that of a rule.
type Verdict struct {
	Strategy       string
	Hub, Spoke     []string // fields
	ToSpoke, ToHub bool
	// Claimed is true if its author, not this package, says that it loses nothing.
	Claimed bool

	at *field.Path
}

// Compile compiles rules for the schemas of the versions of a group. It returns a Converter if the
// report has no Errors; fields without a rule are dropped.
func Compile(r *Rules, group string, schemas map[string]*v1.JSONSchemaProps, at *field.Path) (*Converter, *Report) {
	report := &Report{failClosed: r.DriftPolicy == "FailClosed"}
	out := &Converter{group: group, hub: r.HubVersion, spokes: map[string]*pair{}}
	hub := schemas[r.HubVersion]
	if hub == nil {
		report.Errors = append(report.Errors, field.Invalid(at.Child("hubVersion"), r.HubVersion, "is not a version of the definition with a schema"))
		return nil, report
	}
	switch r.UnmappedFieldPolicy {
	case "", "Error":
	case "Warn":
		if r.UnmappedFieldReason == "" {
			report.Errors = append(report.Errors, field.Required(at.Child("unmappedFieldReason"), "say why fields without a rule may be lost"))
		}
	default:
		report.Errors = append(report.Errors, field.NotSupported(at.Child("unmappedFieldPolicy"), r.UnmappedFieldPolicy, []string{"Error", "Warn"}))
	}
	if len(r.Spokes) == 0 {
		report.Errors = append(report.Errors, field.Required(at.Child("spokes"), ""))
	}
	for i, spoke := range r.Spokes {
		at := at.Child("spokes").Index(i)
		schema := schemas[spoke.Version]
		switch {
		case spoke.Version == r.HubVersion:
			report.Errors = append(report.Errors, field.Invalid(at.Child("version"), spoke.Version, "is the hub"))
		case out.spokes[spoke.Version] != nil:
			report.Errors = append(report.Errors, field.Duplicate(at.Child("version"), spoke.Version))
		case schema == nil:
			report.Errors = append(report.Errors, field.Invalid(at.Child("version"), spoke.Version, "is not a version of the definition with a schema"))
		default:
			verdict := Pair{Version: spoke.Version}
			out.spokes[spoke.Version] = report.pair(&spoke, r.HubVersion, hub, schema, at, &verdict)
			report.Pairs = append(report.Pairs, verdict)
		}
	}
	for version := range schemas {
		if version != r.HubVersion && out.spokes[version] == nil && len(report.Errors) == 0 {
			report.Errors = append(report.Errors, field.Required(at.Child("spokes"), fmt.Sprintf("there are no rules for version %q of the definition", version)))
		}
	}
	if r.UnmappedFieldPolicy == "Warn" {
		for _, e := range report.Unmapped {
			report.Warnings = append(report.Warnings, e.Error())
		}
		report.Unmapped = nil
	}
	if len(report.Errors) > 0 {
		return nil, report
	}
	return out, report
}

// pair compiles the rules of a spoke.
func (r *Report) pair(spoke *Spoke, hubVersion string, hub, schema *v1.JSONSchemaProps, at *field.Path, verdict *Pair) *pair {
	c := &compiler{report: r, verdict: verdict, at: at.Child("rules"),
		hub: side{name: hubVersion, schema: hub}, spoke: side{name: spoke.Version, schema: schema}}
	c.hub.other, c.spoke.other = &c.spoke, &c.hub
	c.compile(spoke.Rules)
	verdict.ToSpoke, verdict.ToHub = !c.hub.lossy, !c.spoke.lossy
	verdict.MissHub, verdict.MissSpoke = c.hub.missed, c.spoke.missed
	return &pair{toSpoke: &c.hub.plan, toHub: &c.spoke.plan}
}

// A side is one of the two versions, and the conversion from it.
type side struct {
	name   string
	other  *side
	schema *v1.JSONSchemaProps
	prefix string // of paths in a list
	claims []claim
	plan   plan
	lossy  bool
	missed []string
	// The rule that is being compiled:
	fields []string
	loses  bool
}

// A claim says that a rule is about a field.
type claim struct {
	path
	rule int
}

// A compiler compiles the rules of one pair of schemas.
type compiler struct {
	report     *Report
	verdict    *Pair
	at         *field.Path // of the rules
	hub, spoke side
	depth      int // of lists

	rule    *rule
	index   int
	claimed bool // the author says that the rule loses nothing
}

// compile decodes and compiles rules.
func (c *compiler) compile(data []json.RawMessage) {
	var rules []*rule
	for i, one := range data {
		r, errs := decodeRule(one, c.at.Index(i))
		c.report.Errors = append(c.report.Errors, errs...)
		if r != nil {
			rules = append(rules, r)
		}
	}
	if len(rules) > maxRules {
		c.report.Errors = append(c.report.Errors, field.TooMany(c.at, len(rules), maxRules))
		return
	}
	for i, r := range rules {
		c.rule, c.index, c.claimed = r, i, false
		for _, s := range []*side{&c.hub, &c.spoke} {
			s.fields, s.loses = nil, false
		}
		before := [2]int{len(c.hub.plan.steps), len(c.spoke.plan.steps)}
		r.resolve(c)
		if r.when != nil {
			c.limit(before)
		}
		for _, s := range []*side{&c.hub, &c.spoke} {
			s.lossy = s.lossy || s.loses
			if s.loses && !r.acknowledge {
				c.fail(field.Forbidden(r.at, fmt.Sprintf("a conversion from %s to %s loses values of %s: set acknowledgeLossy and a reason, or use a strategy that keeps them", s.name, s.other.name, s.named())))
			}
		}
		if r.acknowledge && r.reason == "" {
			c.warn("acknowledges a loss without a reason")
		}
		c.verdict.Rules = append(c.verdict.Rules, Verdict{Strategy: r.strategy, Hub: c.hub.fields, Spoke: c.spoke.fields,
			ToSpoke: !c.hub.loses, ToHub: !c.spoke.loses, Claimed: c.claimed && !r.acknowledge, at: r.at})
	}
	c.hub.cover(c)
	c.spoke.cover(c)
}

func (s *side) named() string {
	if len(s.fields) == 0 {
		return "its fields"
	}
	return s.prefix + s.fields[0]
}

// limit applies the condition of the rule to its steps.
func (c *compiler) limit(before [2]int) {
	w := c.rule.when
	for i, s := range []*side{&c.hub, &c.spoke} {
		if w.path == nil {
			return
		}
		if _, err := schemaAt(s.schema, w.path); err != nil {
			c.fail(field.Invalid(c.rule.at, w.path.String(), fmt.Sprintf("when.path in version %s: %v", s.name, err)))
		}
		for k := before[i]; k < len(s.plan.steps); k++ {
			s.plan.steps[k].when = w
		}
		s.loses = s.loses || len(s.fields) > 0 // of objects with other values
	}
}

func (c *compiler) fail(e *field.Error) { c.report.Errors = append(c.report.Errors, e) }

func (c *compiler) invalid(name string, value any, format string, args ...any) {
	c.fail(field.Invalid(c.rule.at.Child(name), value, fmt.Sprintf(format, args...)))
}

func (c *compiler) warn(format string, args ...any) {
	c.report.Warnings = append(c.report.Warnings, fmt.Sprintf("%s: %s", c.rule.at, fmt.Sprintf(format, args...)))
}

// claim parses the path of a parameter and claims the field in a version. It returns nil after an error.
func (c *compiler) claim(s *side, name, text string) (path, *v1.JSONSchemaProps) {
	p, err := parsePath(text)
	if err != nil {
		c.invalid(name, text, "%v", err)
		return nil, nil
	}
	schema, err := schemaAt(s.schema, p)
	if err != nil {
		c.invalid(name, text, "in version %s: %v", s.name, err)
		return nil, nil
	}
	if !c.reserve(s, name, p) {
		return nil, nil
	}
	return p, schema
}

// maxClaims limits the fields that the rules of a spoke are about.
const maxClaims = 2048

// reserve claims a field, unless another rule is about it.
func (c *compiler) reserve(s *side, name string, p path) bool {
	if len(s.claims) == maxClaims {
		c.fail(field.TooMany(c.rule.at.Child(name), maxClaims+1, maxClaims))
		s.claims = append(s.claims, claim{}) // once
	}
	if len(s.claims) > maxClaims {
		return false
	}
	for _, known := range s.claims {
		if known.rule != c.index && (known.path.has(p) || p.has(known.path)) {
			c.invalid(name, p.String(), "rule %d is about %s of version %s already", known.rule, known.path, s.name)
			return false
		}
	}
	s.claims = append(s.claims, claim{p, c.index})
	s.fields = append(s.fields, p.String())
	return true
}

// step adds a step to the conversion from a version.
func (s *side) step(st step) { s.plan.steps = append(s.plan.steps, st) }

// taking returns fields of a version, to be removed in a conversion from it.
func (s *side) taking(paths ...path) (out []taken) {
	for _, p := range paths {
		out = append(out, taken{p, keptOf(s.other.schema, p)})
	}
	return out
}

// writing returns fields of the other version.
func (s *side) writing(paths ...path) (out []target) {
	for _, p := range paths {
		schema, _ := schemaAt(s.other.schema, p)
		out = append(out, target{p, schema})
	}
	return out
}

// cover reports the fields that no rule is about and that the other version does not have alike.
func (s *side) cover(c *compiler) {
	leaves(s.schema, nil, func(p path, mine *v1.JSONSchemaProps) {
		claimed := func(k claim) bool { return len(p) == 0 || p.has(k.path) }
		if slices.ContainsFunc(s.claims, claimed) {
			return
		}
		if len(p) == 0 {
			return // a version without known fields keeps all
		}
		its, err := schemaAt(s.other.schema, p)
		if err != nil && s.other.keeps(p) {
			return
		}
		taken := slices.ContainsFunc(s.other.claims, claimed)
		at, differs := "", false
		if err == nil && !taken {
			if at, differs = difference(mine, its); !differs {
				return
			}
		}
		what := fmt.Sprintf("version %s has no such field", s.other.name)
		switch {
		case err == nil && taken:
			what = fmt.Sprintf("another rule sets this field of version %s", s.other.name)
		case err == nil && at == "":
			what = fmt.Sprintf("its type is %s, and %s in version %s", kindOf(mine), kindOf(its), s.other.name)
		case err == nil:
			what = fmt.Sprintf("version %s has no such field, or another type", s.other.name)
		}
		name := s.prefix + p.String() + at
		s.missed = append(s.missed, name)
		s.lossy = true
		c.report.Unmapped = append(c.report.Unmapped, field.Required(c.at, fmt.Sprintf("no rule is about %s of version %s: %s", name, s.name, what)))
		if at == "" { // below, pruning drops what the other version does not have
			s.plan.unmapped = append(s.plan.unmapped, s.taking(p)...)
		}
	})
}

// keeps reports whether a version keeps a field that it does not know.
func (s *side) keeps(p path) bool {
	schema := s.schema
	for _, name := range p {
		if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields {
			return true
		}
		next, ok := schema.Properties[name]
		if !ok {
			return schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema == nil
		}
		schema = &next
	}
	return false
}
