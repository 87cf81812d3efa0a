package compile

import (
	"context"
	"errors"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry/convert"
	"github.com/anykind/anykind/internal/schema/conversion"
)

// Conversion has the dependencies of calls to conversion webhooks.
type Conversion struct {
	// Poster posts to webhooks. Without it, conversions by webhook fail: changing only the apiVersion
	// would corrupt objects.
	Poster convert.Poster
	// Metrics may be nil.
	Metrics *convert.Metrics
}

// add adds the conversion of a CustomResourceDefinition to d, if its versions differ in more than
// their apiVersion and schema.
func (c *Conversion) add(d *resource.Definition, crd *v1.CustomResourceDefinition, schemas Schemas) {
	if _, ok := crd.Annotations[conversion.Annotation]; ok {
		d.Convert = byRules(crd, schemas)
		return
	}
	if crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != v1.WebhookConverter {
		return
	}
	hook := crd.Spec.Conversion.Webhook
	if c.Poster == nil || hook == nil || hook.ClientConfig == nil {
		d.Convert = refuseToConvert
		return
	}
	w := &convert.Webhook{
		Poster:         c.Poster,
		Config:         webhookConfig(hook.ClientConfig),
		Group:          crd.Spec.Group,
		ReviewVersions: hook.ConversionReviewVersions,
		Metrics:        c.Metrics,
	}
	d.Convert, d.ConversionClock = w.Convert, w.Clock
}

func refuseToConvert(context.Context, []map[string]any, string) ([]map[string]any, error) {
	return nil, status.Internal(errors.New("conversion webhooks cannot be called here"))
}

func webhookConfig(c *v1.WebhookClientConfig) webhook.Config {
	config := webhook.Config{CABundle: c.CABundle}
	switch {
	case c.URL != nil:
		config.URL = *c.URL
	case c.Service != nil:
		config.Service = webhook.Service{Namespace: c.Service.Namespace, Name: c.Service.Name}
		if c.Service.Port != nil {
			config.Service.Port = *c.Service.Port
		}
		if c.Service.Path != nil {
			config.Service.Path = *c.Service.Path
		}
	}
	return config
}
