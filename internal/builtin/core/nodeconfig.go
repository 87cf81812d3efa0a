package core

import (
	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// Old kubelets read their configuration from ConfigMaps. A node that still refers to one must do so
// correctly.

// validateNodeConfigs validates the references to the kubelet configuration of a node.
func validateNodeConfigs(c *rule.Check, node *corev1.Node) {
	//lint:ignore SA1019 a node of old may have it
	if s := node.Spec.ConfigSource; s != nil {
		validateConfigSource(c.At("spec", "configSource"), s, func(c *rule.Check, m *corev1.ConfigMapNodeConfigSource) {
			if m.UID != "" {
				c.At("uid").Forbidden("uid must not be set in spec")
			}
			if m.ResourceVersion != "" {
				c.At("resourceVersion").Forbidden("resourceVersion must not be set in spec")
			}
		})
	}
	config := node.Status.Config
	if config == nil {
		return
	}
	for _, one := range []struct {
		name   string
		source *corev1.NodeConfigSource
	}{{"assigned", config.Assigned}, {"active", config.Active}, {"lastKnownGood", config.LastKnownGood}} {
		if one.source == nil {
			continue
		}
		validateConfigSource(c.At("status", "config", one.name), one.source, func(c *rule.Check, m *corev1.ConfigMapNodeConfigSource) {
			if m.UID == "" {
				c.At("uid").Required("")
			}
			if m.ResourceVersion == "" {
				c.At("resourceVersion").Required("")
			}
		})
	}
}

// validateConfigSource checks that a source refers to a key of a ConfigMap at a revision.
func validateConfigSource(c *rule.Check, s *corev1.NodeConfigSource, revision func(*rule.Check, *corev1.ConfigMapNodeConfigSource)) {
	m := s.ConfigMap
	if m == nil {
		c.Invalid(s, "exactly one reference subfield must be non-nil")
		return
	}
	at := c.At("configMap")
	revision(at, m)
	for _, f := range []struct {
		name, value string
		details     func(string) []string
	}{
		{"namespace", m.Namespace, func(s string) []string { return apivalidation.ValidateNamespaceName(s, false) }},
		{"name", m.Name, func(s string) []string { return apivalidation.NameIsDNSSubdomain(s, false) }},
		{"kubeletConfigKey", m.KubeletConfigKey, validation.IsConfigMapKey},
	} {
		if f.value == "" {
			at.At(f.name).Required("")
			continue
		}
		for _, detail := range f.details(f.value) {
			at.At(f.name).Invalid(f.value, detail)
		}
	}
}
