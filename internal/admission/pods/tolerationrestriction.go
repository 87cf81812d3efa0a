package pods

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// TolerationRestriction adds default tolerations to the pods of a namespace. It rejects tolerations
// that neither the namespace nor the configuration allows.
type TolerationRestriction struct {
	Namespaces *stored.Lister[corev1.Namespace]
	Config     *TolerationConfig
}

// TolerationConfig is the configuration of TolerationRestriction.
type TolerationConfig struct {
	Default []corev1.Toleration `json:"default,omitempty"`
	Allowed []corev1.Toleration `json:"whitelist,omitempty"`
}

// ReadTolerations reads the configuration of TolerationRestriction.
func ReadTolerations(config []byte) (*TolerationConfig, error) {
	kind := schema.GroupVersionKind{Group: "podtolerationrestriction.admission.k8s.io", Version: "v1alpha1", Kind: "Configuration"}
	c, err := admission.Decode[TolerationConfig](config, kind)
	if err != nil {
		return nil, err
	}
	const at = "podtolerationrestriction"
	errs := append(pod.ValidateTolerations(c.Default, at, "default"), pod.ValidateTolerations(c.Allowed, at, "whitelist")...)
	if len(errs) > 0 {
		return nil, fmt.Errorf("invalid config: %v", errs)
	}
	return c, nil
}

const (
	defaultAnnotation = "scheduler.alpha.kubernetes.io/defaultTolerations"
	allowedAnnotation = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
)

// Mutate implements registry.Mutator.
func (t *TolerationRestriction) Mutate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(pods, "", registry.Create, registry.Update) {
		return nil
	}
	var more []corev1.Toleration
	if a.Operation == registry.Create {
		tolerations, err := t.of(ctx, a, defaultAnnotation)
		if err != nil {
			return err
		}
		if more = tolerations; more == nil {
			more = slices.Clone(t.Config.Default)
		}
	}
	if pod.QOS(a.Gates, a.Object) != corev1.PodQOSBestEffort {
		more = append(more, corev1.Toleration{
			Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule,
		})
	}
	if len(more) > 0 {
		putTolerations(a, mergeTolerations(partOf(specOf(a), "tolerations").Tolerations, more))
	}
	return t.Validate(ctx, a)
}

// Validate implements registry.Validator.
func (t *TolerationRestriction) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(pods, "", registry.Create, registry.Update) {
		return nil
	}
	has := partOf(specOf(a), "tolerations").Tolerations
	if len(has) == 0 {
		return nil
	}
	allowed, err := t.of(ctx, a, allowedAnnotation)
	if err != nil {
		return err
	}
	by := "namespace"
	if allowed == nil {
		allowed, by = t.Config.Allowed, "cluster"
	}
	for _, asked := range has {
		may := func(by corev1.Toleration) bool { return includes(by, asked) }
		if len(allowed) > 0 && !slices.ContainsFunc(allowed, may) {
			return fmt.Errorf("pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist", by)
		}
	}
	return nil
}

// of returns the tolerations in an annotation of the pod's namespace, nil without the annotation.
func (t *TolerationRestriction) of(ctx context.Context, a *registry.Admission, annotation string) ([]corev1.Toleration, error) {
	namespace, err := namespaceOf(ctx, a, t.Namespaces)
	if err != nil {
		return nil, err
	}
	text, ok := namespace.Annotations[annotation]
	if !ok {
		return nil, nil
	}
	var tolerations []corev1.Toleration
	if text != "" {
		err = json.Unmarshal([]byte(text), &tolerations)
	}
	return append([]corev1.Toleration{}, tolerations...), err
}
