package check

import (
	"cmp"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// The used part of SARIF, the result format of code scanning:
// https://docs.oasis-open.org/sarif/sarif/v2.1.0/
type (
	sarif struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn"`
	}
)

// WriteSARIF writes a report as SARIF.
func (r *Report) WriteSARIF(w io.Writer) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "anykind", Rules: []sarifRule{}}}, Results: []sarifResult{}}
	for i := range r.Results {
		one := &r.Results[i]
		add := func(level, rule string, p Problem) {
			if !slices.Contains(run.Tool.Driver.Rules, sarifRule{rule}) {
				run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{rule})
			}
			run.Results = append(run.Results, sarifResult{
				RuleID: rule, Level: level, Message: sarifMessage{one.text(p)},
				Locations: []sarifLocation{{sarifPhysical{sarifArtifact{fileURI(one.File)}, p.region()}}},
			})
		}
		for _, p := range one.Problems {
			add("error", cmp.Or(p.Type, one.Reason, string(one.Verdict)), p)
		}
		for _, p := range one.Warnings {
			add("warning", "Warning", p)
		}
	}
	return encodeJSON(w, sarif{
		Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run},
	})
}

// region returns the place in the file, or nil if it is unknown.
func (p *Problem) region() *sarifRegion {
	if p.Line == 0 {
		return nil
	}
	return &sarifRegion{p.Line, p.Column}
}

// fileURI returns a file as a relative URI, or as a file URI for an absolute path.
func fileURI(file string) string {
	u := url.URL{Path: filepath.ToSlash(file)}
	if filepath.IsAbs(file) {
		u.Scheme = "file"
		if !strings.HasPrefix(u.Path, "/") { // a drive
			u.Path = "/" + u.Path
		}
	}
	return u.String()
}
