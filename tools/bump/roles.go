package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A role is a default role or binding as kube-apiserver's own test data has it.
type role struct {
	Kind     string
	Metadata struct {
		Name, Namespace string
		Labels          map[string]string
	}
	AggregationRule json.RawMessage
	Rules           []struct {
		Verbs           []string `json:"verbs,omitempty"`
		Resources       []string `json:"resources,omitempty"`
		ResourceNames   []string `json:"resourceNames,omitempty"`
		NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
		APIGroups       []string `json:"apiGroups,omitempty"`
	}
	RoleRef  json.RawMessage
	Subjects []json.RawMessage
}

// readRoles returns the default roles and bindings with their rules.
func readRoles(s *source) (facts, error) {
	const policy = "k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
	files, err := filepath.Glob(filepath.Join(s.dir(policy), "*.yaml"))
	if err != nil {
		return nil, err
	}
	out := facts{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var list struct{ Items []role }
		if err := yaml.Unmarshal(data, &list); err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		for _, r := range list.Items {
			f := fact{at: policy + "/" + base + ":1"}
			for _, rule := range r.Rules {
				text, err := json.Marshal(rule)
				if err != nil {
					return nil, err
				}
				f.parts = append(f.parts, string(text))
			}
			for _, text := range append([]json.RawMessage{r.AggregationRule, r.RoleRef}, r.Subjects...) {
				if len(text) > 0 {
					f.parts = append(f.parts, string(text))
				}
			}
			title := r.Kind + " " + r.Metadata.Name
			if r.Metadata.Namespace != "" {
				title += " in " + r.Metadata.Namespace
			}
			if strings.Contains(base, "featuregates") {
				title += withGates
			}
			out[title] = f
		}
	}
	for title, f := range out {
		if plain, ok := strings.CutSuffix(title, withGates); ok && slices.Equal(f.parts, out[plain].parts) {
			delete(out, title)
		}
	}
	return out, nil
}

// withGates ends the name of a role whose rules are others with all gates.
const withGates = " (gates)"
