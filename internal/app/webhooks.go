package app

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	admissionwebhook "github.com/anykind/anykind/internal/admission/webhook"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/stored"
)

// mutatingWebhooks makes the plugin that asks mutating webhooks.
func (w *wired) mutatingWebhooks(core *resource.Set) func([]byte) (any, error) {
	return func(config []byte) (any, error) {
		c, err := admissionwebhook.ReadConfig(config)
		if err != nil {
			return nil, err
		}
		p, err := admissionwebhook.NewMutating(w.webhookOptions(core), c)
		if err != nil {
			return nil, err
		}
		w.follow(c.StaticManifestsDir, p.Follow)
		return p, nil
	}
}

// validatingWebhooks makes the plugin that asks validating webhooks.
func (w *wired) validatingWebhooks(core *resource.Set) func([]byte) (any, error) {
	return func(config []byte) (any, error) {
		c, err := admissionwebhook.ReadConfig(config)
		if err != nil {
			return nil, err
		}
		p, err := admissionwebhook.NewValidating(w.webhookOptions(core), c)
		if err != nil {
			return nil, err
		}
		w.follow(c.StaticManifestsDir, p.Follow)
		return p, nil
	}
}

// follow has the files of a folder followed, if there is one.
func (w *wired) follow(folder string, follow func(context.Context)) {
	if folder != "" {
		w.following = append(w.following, follow)
	}
}

func (w *wired) webhookOptions(core *resource.Set) admissionwebhook.Options {
	return admissionwebhook.Options{
		Cache: w.cache, Kinds: core, Catalog: w.catalog, Namespaces: stored.List[corev1.Namespace](w.cache, core, corev1.Resource("namespaces")),
		Authorizer: w.authorizer, Poster: w.webhooks, Metrics: w.admissions, Manifests: w.manifests, Log: w.log,
	}
}
