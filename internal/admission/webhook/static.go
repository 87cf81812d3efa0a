package webhook

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// load reads the configurations in files, if StaticManifestsDir is set.
func (p *plugin) load(name, plural string, c *Config) error {
	if c.StaticManifestsDir == "" {
		return nil
	}
	p.folder = &manifest.Folder{
		Path: c.StaticManifestsDir, Plugin: name, Kinds: []*resource.Definition{p.Kinds.Lookup(admissionv1.GroupName, plural)},
		Check: checkClients, Replace: p.replaceFiles, Metrics: p.Manifests, Log: p.Log,
	}
	if err := p.folder.Load(); err != nil {
		return fmt.Errorf("failed to load static webhook manifests from %q: %w", c.StaticManifestsDir, err)
	}
	return nil
}

// Follow reloads the configurations in files when they change, until ctx ends.
func (p *plugin) Follow(ctx context.Context) { p.folder.Follow(ctx) }

// replaceFiles replaces the configurations from files.
func (c *configurations) replaceFiles(objects []object.Tree) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	previous := c.inFile
	c.inFile = nil
	for _, t := range objects {
		made, err := c.make(object.AppendJSON(nil, t), "manifest/")
		if err != nil {
			c.inFile = previous
			return err
		}
		c.inFile = append(c.inFile, made.webhooks...)
	}
	c.index()
	return nil
}

// checkClients checks that webhooks from files have URLs. Services are objects of the API.
func checkClients(t object.Tree, file string) error {
	webhooks, _ := t["webhooks"].([]any)
	for _, w := range webhooks {
		hook, _ := w.(map[string]any)
		client, _ := hook["clientConfig"].(map[string]any)
		url, _ := client["url"].(string)
		switch {
		case client["service"] != nil:
			return fmt.Errorf("webhook %q in %q (file %q): clientConfig.service is not supported for static manifests; use clientConfig.url instead", hook["name"], object.Name(t), file)
		case url == "":
			return fmt.Errorf("webhook %q in %q (file %q): clientConfig.url is required for static manifests", hook["name"], object.Name(t), file)
		}
	}
	return nil
}
