package quota

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// A configuration lists resources that need a quota.
type configuration struct {
	metav1.TypeMeta `json:",inline"`

	LimitedResources []limited `json:"limitedResources"`
}

// limited lists the resources of one kind that cannot be used without a quota.
type limited struct {
	APIGroup string `json:"apiGroup,omitempty"`
	Resource string `json:"resource"`
	// MatchContains are substrings of resource names.
	MatchContains []string `json:"matchContains,omitempty"`
	// MatchScopes are scopes of objects.
	MatchScopes []corev1.ScopedResourceSelectorRequirement `json:"matchScopes,omitempty"`
}

func (l *limited) is(r schema.GroupResource) bool {
	return l.APIGroup == r.Group && l.Resource == r.Resource
}

// kinds are the kinds of the configuration by version.
var kinds = map[string]string{
	"apiserver.config.k8s.io/v1":              "ResourceQuotaConfiguration",
	"resourcequota.admission.k8s.io/v1beta1":  "Configuration",
	"resourcequota.admission.k8s.io/v1alpha1": "Configuration",
}

// read decodes a configuration, which may be nil.
func read(data []byte) (c configuration, err error) {
	if data == nil {
		return c, nil
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return c, err
	}
	if c.Kind == "" || kinds[c.APIVersion] != c.Kind {
		return c, fmt.Errorf("no kind %q is registered for version %q", c.Kind, c.APIVersion)
	}
	var errs []error
	for i := range c.LimitedResources {
		if c.LimitedResources[i].Resource == "" {
			errs = append(errs, field.Required(field.NewPath("limitedResources").Index(i).Child("resource"), ""))
		}
	}
	return c, errors.Join(errs...)
}
