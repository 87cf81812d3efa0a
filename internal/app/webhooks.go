package app

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	admissionwebhook "github.com/anykind/anykind/internal/admission/webhook"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
)

// mutatingWebhooks returns the constructor of the plugin for mutating webhooks.
func (w *wired) mutatingWebhooks(gates *gate.Set, core *resource.Set) func([]byte) (any, error) {
	return func(config []byte) (any, error) {
		c, err := admissionwebhook.ReadConfig(config, gates)
		if err != nil {
			return nil, err
		}
		p, err := admissionwebhook.NewMutating(w.webhookOptions(core), c)
		return withFiles(w, c.StaticManifestsDir, p, err)
	}
}

// validatingWebhooks returns the constructor of the plugin for validating webhooks.
func (w *wired) validatingWebhooks(gates *gate.Set, core *resource.Set) func([]byte) (any, error) {
	return func(config []byte) (any, error) {
		c, err := admissionwebhook.ReadConfig(config, gates)
		if err != nil {
			return nil, err
		}
		p, err := admissionwebhook.NewValidating(w.webhookOptions(core), c)
		return withFiles(w, c.StaticManifestsDir, p, err)
	}
}

// withFiles returns a plugin, or the error of its constructor. It follows the folder of the plugin's
// files, if there is one.
func withFiles[P interface{ Follow(context.Context) }](w *wired, folder string, p P, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	if folder != "" {
		w.following = append(w.following, p.Follow)
	}
	return p, nil
}

func (w *wired) webhookOptions(core *resource.Set) admissionwebhook.Options {
	return admissionwebhook.Options{
		Cache: w.cache, Kinds: core, Catalog: w.catalog, Namespaces: stored.List[corev1.Namespace](w.cache, core, corev1.Resource("namespaces")),
		Authorizer: w.authorizer, Poster: w.webhooks, Rehearsal: w.copied, Metrics: w.admissions, Manifests: w.manifests, Outcomes: w.outcomes, Log: w.log,
	}
}
