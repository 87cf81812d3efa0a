package conversion

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
)

// tries is the number of random objects of each version with which a claim is tried.
const tries = 64

// Check compiles the rules for a CustomResourceDefinition, and tries with random objects what their author
// claims. at is the path of the rules.
func (r *Rules) Check(crd *v1.CustomResourceDefinition, at *field.Path) *Report {
	all, err := decodeSchemas(crd, SchemasOf(crd))
	if err != nil {
		return &Report{Errors: field.ErrorList{field.InternalError(at, err)}}
	}
	c, report := Compile(r, crd.Spec.Group, all, at)
	if c != nil {
		for i := range report.Pairs {
			c.try(report, r.HubVersion, &report.Pairs[i], all)
		}
	}
	return report
}

// CheckOf is Check for the rules in the annotation of a CustomResourceDefinition.
func CheckOf(crd *v1.CustomResourceDefinition) *Report {
	rules, report := Written(crd)
	if rules == nil {
		return report
	}
	return rules.Check(crd, AnnotationPath())
}

// try converts random objects there and back if a rule claims to lose nothing, and reports a claim that is
// wrong. Objects with values that the rules do not allow say nothing.
func (c *Converter) try(report *Report, hub string, p *Pair, schemas map[string]*v1.JSONSchemaProps) {
	if !slices.ContainsFunc(p.Rules, func(r Verdict) bool { return r.Claimed }) {
		return
	}
	s := Sampler{Rand: rand.New(rand.NewPCG(1, 2))}
	for _, way := range [][2]string{{hub, p.Version}, {p.Version, hub}} {
		for range tries {
			t := s.Object(c.group+"/"+way[0], "Sample", schemas[way[0]])
			back, err := c.RoundTrip(context.Background(), t, way[1])
			if err != nil {
				continue
			}
			at, was, is := Lost(t, back)
			for i := range p.Rules {
				r := &p.Rules[i]
				of := r.Hub
				if way[0] != hub {
					of = r.Spoke
				}
				if at != "" && r.Claimed && about(of, at) {
					report.Warnings = append(report.Warnings, fmt.Sprintf("%s: an object of version %s does not keep %s on its way to version %s and back: %v becomes %v",
						r.at.Child("losslessOverride"), way[0], at, way[1], asText(was), asText(is)))
					return
				}
			}
		}
	}
}

// asText returns a value for a message; "nothing" for none.
func asText(v any) string {
	if v == nil {
		return "nothing"
	}
	return string(object.AppendJSON(nil, v))
}

// about reports whether a place is in one of some fields.
func about(of []string, at string) bool {
	for _, f := range of {
		if at == f || strings.HasPrefix(at, f+".") || strings.HasPrefix(at, f+"[") {
			return true
		}
	}
	return false
}
