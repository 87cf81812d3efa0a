package main

import "sigs.k8s.io/yaml"

// A krewPlugin is a manifest of krew, which installs plugins of kubectl
// (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/).
type krewPlugin struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   krewMetadata `json:"metadata"`
	Spec       krewSpec     `json:"spec"`
}

type krewMetadata struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Files    []krewMove   `json:"files"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type krewMove struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// krew returns the manifest of the plugin anykind. The file name has to match.
func (r *release) krew(archives []written) ([]byte, error) {
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMetadata{"anykind"},
		Spec: krewSpec{
			Version: r.version, Homepage: repository,
			ShortDescription: "Check objects and CRDs without a server",
			Description: `Says what a server would say to objects and CustomResourceDefinitions in files, what a new
definition means for those who have objects, and serves the Kubernetes API for any kind.
`,
		},
	}
	for _, a := range archives {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": a.os, "arch": a.arch}},
			URI:      r.base + "/" + a.name, SHA256: a.sha256, Bin: a.program(),
			Files: []krewMove{
				{r.folder(a.platform) + "/" + a.program(), "."},
				{r.folder(a.platform) + "/LICENSE*", "."},
			},
		})
	}
	return yaml.Marshal(plugin)
}
