package check

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// A server copies the rules of a CRDConversionConfig into the annotation of its definition. A check does the
// same with the ones among its documents, so that objects are converted by them, and reports errors in rules
// at their document.

// isRules reports whether a document has conversion rules.
func (d *Document) isRules() bool {
	return d.broken == nil && conversion.IsConfig(d.tree)
}

// target returns the name of the definition that rules are for.
func (d *Document) target() string {
	spec, _ := d.tree["spec"].(object.Tree)
	target, _ := spec["targetCRD"].(object.Tree)
	name, _ := target["name"].(string)
	return name
}

// ruleText returns rules as the annotation of a definition.
func (d *Document) ruleText() string { return string(object.AppendJSON(nil, d.tree["spec"])) }

// rulesOf returns the documents with rules, by the names of their definitions.
func rulesOf(all ...*Documents) map[string]*Document {
	out := map[string]*Document{}
	for _, of := range all {
		for i := range of.documents {
			if d := &of.documents[i]; d.isRules() {
				out[d.target()] = d
			}
		}
	}
	return out
}

// defineWithRules defines a definition with the rules of another document. If they are wrong, it defines it
// without them. The errors are kept for the result of that document.
func (c *checker) defineWithRules(ctx context.Context, d, rules *Document) (Result, error) {
	with := *d
	with.tree = object.CloneTree(d.tree)
	object.SetAnnotation(with.tree, conversion.Annotation, rules.ruleText())
	with.body, with.media = object.AppendJSON(nil, with.tree), codec.JSON
	r := with.result()
	if err := c.ask(ctx, &with, &r, false); err != nil {
		return r, err
	}
	prefix := conversion.AnnotationPath().String()
	own := func(p Problem) bool { return p.Field == prefix || strings.HasPrefix(p.Field, prefix+".") }
	for _, p := range r.Problems {
		if own(p) {
			p.Field = "spec" + strings.TrimPrefix(p.Field, prefix)
			p.Line, p.Column = 0, 0
			c.wrong[rules] = append(c.wrong[rules], p)
		}
	}
	if len(c.wrong[rules]) == 0 {
		return r, nil
	}
	r = d.result()
	return r, c.ask(ctx, d, &r, false)
}

// checkRules returns the result of a document with rules.
func (c *checker) checkRules(ctx context.Context, d *Document) (Result, error) {
	r := d.result()
	if _, err := c.find(d); err == nil { // its kind is defined, too
		if err := c.ask(ctx, d, &r, true); err != nil || r.Verdict != Accepted {
			return r, err
		}
	}
	r.Verdict = Accepted
	switch wrong := c.wrong[d]; {
	case len(wrong) > 0:
		r.Verdict, r.Message, r.Problems = Refused, wrong[0].Field+": "+wrong[0].Message, slices.Clone(wrong)
	case c.given[d.target()] == nil && !c.o.PassUnknown:
		r.Verdict, r.Message = Unknown, fmt.Sprintf("there is no CustomResourceDefinition %q among the files", d.target())
		r.Problems = []Problem{{Field: "spec.targetCRD.name", Message: r.Message}}
	}
	d.place(&r)
	return r, nil
}
