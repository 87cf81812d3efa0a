package podsecurity

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"
)

// configuration is a PodSecurityConfiguration, which has the same fields in all versions.
type configuration struct {
	metav1.TypeMeta `json:",inline"`
	Defaults        struct {
		Enforce        string `json:"enforce"`
		EnforceVersion string `json:"enforce-version"`
		Audit          string `json:"audit"`
		AuditVersion   string `json:"audit-version"`
		Warn           string `json:"warn"`
		WarnVersion    string `json:"warn-version"`
	} `json:"defaults"`
	Exemptions struct {
		Usernames      []string `json:"usernames"`
		Namespaces     []string `json:"namespaces"`
		RuntimeClasses []string `json:"runtimeClasses"`
	} `json:"exemptions"`

	standards api.Policy // the parsed Defaults
}

const group = "pod-security.admission.config.k8s.io"

// read reads a configuration. Without one, the default level is privileged.
func read(data []byte) (*configuration, error) {
	c := &configuration{}
	if len(data) > 0 {
		if err := yaml.UnmarshalStrict(data, c); err != nil {
			return nil, err
		}
		switch c.APIVersion {
		case group + "/v1", group + "/v1beta1", group + "/v1alpha1":
		default:
			return nil, fmt.Errorf("no kind %q is registered for version %q", c.Kind, c.APIVersion)
		}
		if c.Kind != "PodSecurityConfiguration" {
			return nil, fmt.Errorf("expected PodSecurityConfiguration, got %s", c.Kind)
		}
	}
	if err := c.readStandards(); err != nil {
		return nil, fmt.Errorf("%s configuration error: %w", Name, err)
	}
	if errs := c.validateExemptions(); len(errs) > 0 {
		return nil, fmt.Errorf("%s invalid: %w", Name, errs.ToAggregate())
	}
	return c, nil
}

func (c *configuration) readStandards() error {
	var errs field.ErrorList
	d := &c.Defaults
	for _, mode := range []struct {
		to             *api.LevelVersion
		name           string
		level, version string
	}{
		{&c.standards.Enforce, "enforce", d.Enforce, d.EnforceVersion},
		{&c.standards.Audit, "audit", d.Audit, d.AuditVersion},
		{&c.standards.Warn, "warn", d.Warn, d.WarnVersion},
	} {
		var err error
		at := field.NewPath("defaults")
		level, version := cmp.Or(mode.level, string(api.LevelPrivileged)), cmp.Or(mode.version, api.VersionLatest)
		if mode.to.Level, err = api.ParseLevel(level); err != nil {
			errs = append(errs, field.Invalid(at.Child(mode.name), level, err.Error()))
		}
		if mode.to.Version, err = api.ParseVersion(version); err != nil {
			errs = append(errs, field.Invalid(at.Child(mode.name+"-version"), version, err.Error()))
		}
	}
	return errs.ToAggregate()
}

func (c *configuration) validateExemptions() (errs field.ErrorList) {
	at := field.NewPath("exemptions")
	notEmpty := func(name string, _ bool) []string {
		if name == "" {
			return []string{"username must not be empty"}
		}
		return nil
	}
	for _, list := range []struct {
		at    *field.Path
		names []string
		check validation.ValidateNameFunc
	}{
		{at.Child("namespaces"), c.Exemptions.Namespaces, validation.ValidateNamespaceName},
		{at.Child("runtimeClasses"), c.Exemptions.RuntimeClasses, validation.NameIsDNSSubdomain},
		{at.Child("usernames"), c.Exemptions.Usernames, notEmpty},
	} {
		seen := map[string]bool{}
		for i, name := range list.names {
			switch wrong := list.check(name, false); {
			case len(wrong) > 0:
				errs = append(errs, field.Invalid(list.at.Index(i), name, strings.Join(wrong, ", ")))
			case seen[name]:
				errs = append(errs, field.Duplicate(list.at.Index(i), name))
			}
			seen[name] = true
		}
	}
	return errs
}
