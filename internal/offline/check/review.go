package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/schema/crd/change"
)

// reviewNames limits the names of objects for each finding of a Review.
const reviewNames = 20

// A Review has the effects of a new CustomResourceDefinition on a server, before it is applied.
type Review struct {
	// Result has the errors of the definition, and the costs of its rules.
	Result Result `json:"result"`
	// New reports that the server has no definition of this name. The other fields compare with it.
	New     bool             `json:"new"`
	Changes []change.Finding `json:"changes"`
	// Outcome is the effect on stored objects; nil for a review without them.
	Outcome *Outcome `json:"outcome,omitempty"`
}

// Review reviews the one definition of a text in YAML or JSON. With try, it reads and validates all stored objects.
func (s *Server) Review(ctx context.Context, text []byte, try bool) (*Review, error) {
	report, err := Run(ctx, []string{"-"}, bytes.NewReader(text), Options{OnlyDefinitions: true})
	if err != nil {
		return nil, err
	}
	if len(report.Results) != 1 {
		return nil, fmt.Errorf("the text has %d CustomResourceDefinitions; want one", len(report.Results))
	}
	r := &Review{Result: report.Results[0], Changes: []change.Finding{}}
	if r.Result.Verdict != Accepted {
		return r, nil
	}
	definitions, err := Definitions([]string{"-"}, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if len(definitions) != 1 {
		return nil, errors.New("the text has rules of conversions besides a definition")
	}
	now := definitions[0]
	var old v1.CustomResourceDefinition
	if _, err := s.get(ctx, definitionPath+now.Name, &old); apiclient.Missing(err) {
		r.New = true
		return r, nil
	} else if err != nil {
		return nil, err
	}
	r.Changes = append(r.Changes, change.Compare(&old, now)...)
	if try {
		outcome, err := TryAll(ctx, s, now, TrialOptions{Names: reviewNames})
		if err != nil {
			return nil, err
		}
		r.Outcome = &outcome
	}
	return r, nil
}
