// Package imagepolicy implements the admission plugin ImagePolicyWebhook, which asks a webhook
// whether a pod may run its images.
package imagepolicy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/network/review"
	"github.com/anykind/anykind/internal/object/bounded"
	"github.com/anykind/anykind/internal/registry"
)

// Webhook validates the images of pods with a webhook.
type Webhook struct {
	config  config
	server  *review.Client
	answers *bounded.Cache[string, *imagepolicyv1alpha1.ImageReviewStatus]
}

// remembered is the number of cached responses.
const remembered = 1024

type config struct {
	KubeConfigFile string        `json:"kubeConfigFile"`
	AllowTTL       time.Duration `json:"allowTTL"`     // in seconds in the configuration
	DenyTTL        time.Duration `json:"denyTTL"`      // in seconds in the configuration
	RetryBackoff   time.Duration `json:"retryBackoff"` // in milliseconds in the configuration
	DefaultAllow   bool          `json:"defaultAllow"`
}

// New returns a Webhook with a configuration. dial makes all its connections.
func New(text []byte, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Webhook, error) {
	c, err := readConfig(text)
	if err != nil {
		return nil, err
	}
	server, err := review.Open(c.KubeConfigFile, "", dial, review.Timeout)
	if err != nil {
		return nil, err
	}
	server.RetryAfter(c.RetryBackoff)
	return &Webhook{config: c, server: server, answers: bounded.New[string, *imagepolicyv1alpha1.ImageReviewStatus](remembered)}, nil
}

// Close closes idle connections.
func (w *Webhook) Close() { w.server.Close() }

func readConfig(text []byte) (c config, err error) {
	if text == nil {
		return c, errors.New("no config specified")
	}
	var whole struct {
		ImagePolicy config `json:"imagePolicy"`
	}
	if err := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&whole); err != nil {
		return c, err
	}
	c = whole.ImagePolicy
	for _, d := range []struct {
		value              *time.Duration
		unit               time.Duration
		least, most, usual time.Duration
	}{
		{&c.RetryBackoff, time.Millisecond, 1, 5 * time.Minute, 500 * time.Millisecond},
		{&c.AllowTTL, time.Second, time.Second, 30 * time.Minute, 5 * time.Minute},
		{&c.DenyTTL, time.Second, time.Second, 30 * time.Minute, 30 * time.Second},
	} {
		switch *d.value {
		case -1: // no retries
			*d.value = 0
		case 0:
			*d.value = d.usual
		default:
			*d.value *= d.unit
			if *d.value < d.least || *d.value > d.most {
				return c, fmt.Errorf("valid value is between %v and %v, got %v", d.least, d.most, *d.value)
			}
		}
	}
	return c, nil
}

var pods = corev1.Resource("pods")

// Validate implements registry.Validator.
func (w *Webhook) Validate(ctx context.Context, a *registry.Admission) error {
	lists := []string{"containers", "initContainers"}
	switch {
	case a.Is(pods, "", registry.Create, registry.Update):
	case a.Is(pods, "ephemeralcontainers", registry.Create, registry.Update):
		lists = []string{"ephemeralContainers"}
	default:
		return nil
	}
	asked := imagepolicyv1alpha1.ImageReviewSpec{Namespace: a.Target.Namespace, Annotations: map[string]string{}}
	for _, list := range lists {
		for _, v := range kind.List(a.Object, "spec", list) {
			container, _ := v.(map[string]any)
			asked.Containers = append(asked.Containers, imagepolicyv1alpha1.ImageReviewContainerSpec{Image: kind.Text(container, "image")})
		}
	}
	for key, value := range kind.Pairs(a.Object, "metadata", "annotations") {
		if strings.Contains(key, ".image-policy.k8s.io/") {
			asked.Annotations[key] = value
		}
	}
	if err := w.decide(ctx, a, asked); err != nil {
		return a.Forbidden(err)
	}
	return nil
}

// auditPrefix begins the keys of audit annotations.
const auditPrefix = "imagepolicywebhook.image-policy.k8s.io/"

func (w *Webhook) decide(ctx context.Context, a *registry.Admission, asked imagepolicyv1alpha1.ImageReviewSpec) error {
	review, err := w.answer(ctx, asked)
	if err != nil {
		if w.config.DefaultAllow {
			a.Annotate(auditPrefix+"failed-open", "true")
			return nil
		}
		return err
	}
	for key, value := range review.AuditAnnotations {
		a.Annotate(auditPrefix+key, value)
	}
	switch {
	case review.Allowed:
		return nil
	case review.Reason != "":
		return fmt.Errorf("image policy webhook backend denied one or more images: %s", review.Reason)
	}
	return errors.New("one or more images rejected by webhook backend")
}

// answer returns the response of the webhook, from the cache if possible.
func (w *Webhook) answer(ctx context.Context, asked imagepolicyv1alpha1.ImageReviewSpec) (said imagepolicyv1alpha1.ImageReviewStatus, err error) {
	data, err := json.Marshal(asked)
	if err != nil {
		return said, err
	}
	if known, ok := w.answers.Get(string(data)); ok {
		return *known, nil
	}
	var out imagepolicyv1alpha1.ImageReview
	if err := w.server.Post(ctx, imagepolicyv1alpha1.SchemeGroupVersion.WithKind("ImageReview"), &imagepolicyv1alpha1.ImageReview{Spec: asked}, &out); err != nil {
		return said, err
	}
	ttl := w.config.DenyTTL
	if out.Status.Allowed {
		ttl = w.config.AllowTTL
	}
	w.answers.AddFor(ttl, string(data), &out.Status)
	return out.Status, nil
}
