// Package review tells the effects of a new CustomResourceDefinition on a server, before it is applied: its errors
// with their lines, the costs of its rules, changes that break objects or clients, and stored objects that the next
// write would reject.
//
// The console shows a review while a definition is written. The commands anykind crd lint, diff and try print the same
// for files. The package only reads from the server.
package review

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/change"
)

// mostNames limits the names of objects for each finding.
const mostNames = 20

// A Review has the effects of a definition.
type Review struct {
	// Result has the errors of the definition, and the costs of its rules.
	Result check.Result `json:"result"`
	// New reports that the server has no definition of this name. The other fields compare with it.
	New     bool             `json:"new"`
	Changes []change.Finding `json:"changes"`
	// Outcome is the effect on stored objects, if it was asked for.
	Outcome *check.Outcome `json:"outcome,omitempty"`
}

// Definition reviews the one definition of a text in YAML or JSON. With try, it reads and validates all stored objects.
func Definition(ctx context.Context, config *kubeconfig.Config, text []byte, try bool) (*Review, error) {
	report, err := check.Run(ctx, []string{"-"}, bytes.NewReader(text), check.Options{OnlyDefinitions: true})
	if err != nil {
		return nil, err
	}
	if len(report.Results) != 1 {
		return nil, fmt.Errorf("the text has %d CustomResourceDefinitions; want one", len(report.Results))
	}
	r := &Review{Result: report.Results[0], Changes: []change.Finding{}}
	if r.Result.Verdict != check.Accepted {
		return r, nil
	}
	definitions, err := check.Definitions([]string{"-"}, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if len(definitions) != 1 {
		return nil, errors.New("the text has rules of conversions besides a definition")
	}
	now := definitions[0]
	server := apiclient.Server{Client: config.Client(), URL: config.URL}
	defer server.Client.CloseIdleConnections()
	var old v1.CustomResourceDefinition
	if err := server.Get(ctx, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"+now.Name, &old); apiclient.Missing(err) {
		r.New = true
		return r, nil
	} else if err != nil {
		return nil, err
	}
	r.Changes = append(r.Changes, change.Compare(&old, now)...)
	if try {
		r.Outcome, err = outcome(ctx, server, now)
	}
	return r, err
}

// outcome validates all stored objects against a definition.
func outcome(ctx context.Context, server apiclient.Server, now *v1.CustomResourceDefinition) (*check.Outcome, error) {
	stored := &check.Server{Client: server.Client, URL: server.URL}
	trial, err := check.TryAll(ctx, stored, now, check.TrialOptions{Names: mostNames})
	if err != nil {
		return nil, err
	}
	return &trial, nil
}
