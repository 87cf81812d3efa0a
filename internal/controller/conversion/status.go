package conversion

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// A state becomes the status of a CRDConversionConfig.
type state struct {
	name       string // of the CRDConversionConfig
	generation int64
	now        string

	target  *controller.Definition
	report  *conversion.Report
	phase   string
	message string
	applies bool // the definition gets the rules
	blocked bool // its deletion
}

// check compiles the rules for a definition, and decides the phase.
func (s *state) check(rules *conversion.Rules, parseErr error, target *controller.Definition) {
	s.target = target
	switch {
	case parseErr != nil:
		s.phase, s.message = "Invalid", parseErr.Error()
		return
	case target == nil:
		s.phase, s.message = "Pending", fmt.Sprintf("there is no CustomResourceDefinition %q", rules.TargetCRD.Name)
		return
	}
	_, s.report = rules.For(&target.Object, conversion.SchemasOf(&target.Object), field.NewPath("spec"))
	errs := s.report.Refused()
	was, _ := conversion.Written(&target.Object)
	applied := was != nil && was.Config == s.name
	switch {
	case len(errs) == 0:
		s.phase, s.applies = "Applied", true
	case applied:
		// The definition has changed. It keeps its rules, and they convert as far as they fit.
		s.phase, s.message = "Stale", errs.ToAggregate().Error()
	default:
		s.phase, s.message = "Invalid", errs.ToAggregate().Error()
	}
}

// report writes the status of a CRDConversionConfig.
func (c *Controller) report(ctx context.Context, d *resource.Definition, h *controller.Header, s *state) error {
	return c.objects.Change(ctx, d, h.Key, h.UID, "status", func(t object.Tree) bool {
		old, _ := t["status"].(object.Tree)
		status := object.Tree{}
		if old != nil {
			status = object.CloneTree(old)
		}
		t["status"] = status
		if s.blocked {
			controller.SetConditions(t, s.now, controller.Condition{Type: "DeletionBlocked", Status: true, Reason: "MultipleServedVersions", ObservedGeneration: s.generation,
				Message: fmt.Sprintf("the definition serves several versions: serve one, or set the annotation %s to true", unsafeDelete)})
		} else {
			s.write(t, status)
		}
		return !object.Equal(old, t["status"])
	})
}

func (s *state) write(t, status object.Tree) {
	status["observedGeneration"], status["phase"] = s.generation, s.phase
	delete(status, "message")
	if s.message != "" {
		status["message"] = s.message
	}
	condition := func(kind string, holds bool, yes, no, message string) {
		reason := no
		if holds {
			reason = yes
		}
		controller.SetConditions(t, s.now, controller.Condition{Type: kind, Status: holds, Reason: reason, Message: message, ObservedGeneration: s.generation})
	}
	condition("CRDHealthy", s.target != nil, "Established", "NotFound", "")
	condition("Validated", s.applies, "Valid", s.phase, s.message)
	condition("Applied", s.applies || s.phase == "Stale", "Applied", s.phase, s.message)
	condition("Stale", s.phase == "Stale", "SchemaChanged", "UpToDate", s.message)
	if s.report == nil {
		return
	}
	status["observedCRDGeneration"] = s.target.Object.Generation
	lossless, spokes := true, []any{}
	for _, p := range s.report.Pairs {
		lossless = lossless && p.ToHub && p.ToSpoke
		var results []any
		for i, r := range p.Rules {
			result := object.Tree{"index": int64(i), "strategy": r.Strategy, "lossless": directions(r.ToSpoke, r.ToHub)}
			put(result, "hubPaths", r.Hub)
			put(result, "spokePaths", r.Spoke)
			results = append(results, result)
		}
		spoke := object.Tree{"version": p.Version, "lossless": directions(p.ToSpoke, p.ToHub)}
		if len(results) > 0 {
			spoke["ruleResults"] = results
		}
		put(spoke, "fieldsUncoveredHub", p.MissHub)
		put(spoke, "fieldsUncoveredSpoke", p.MissSpoke)
		spokes = append(spokes, spoke)
	}
	status["overallLossless"], status["spokeStatuses"] = lossless, spokes
}

func directions(toSpoke, toHub bool) object.Tree {
	return object.Tree{"hubToSpoke": toSpoke, "spokeToHub": toHub}
}

// put sets a field with texts, unless there are none.
func put(t object.Tree, name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	t[name] = out
}
