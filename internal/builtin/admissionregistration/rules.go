package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// rules are those for types that several kinds use.
var rules = rule.Lazy(rule.All(
	rule.Default[admissionv1.MutatingWebhook](selectAll),
	rule.Default[admissionv1.ValidatingWebhook](selectAll),
	rule.Default[admissionv1.MatchResources](selectAll),
	rule.On(validateOperations),
	rule.On(validateResourceNames),
	rule.On(validateParamKind),
	rule.On(validateParamRef),
))

// selectAll sets a missing selector to one that selects everything.
func selectAll(obj map[string]any) {
	for _, name := range []string{"namespaceSelector", "objectSelector"} {
		if obj[name] == nil {
			obj[name] = map[string]any{}
		}
	}
}

// all is the wildcard.
const all = "*"

// operations are the valid operations in rules.
var operations = []admissionv1.OperationType{
	admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Delete, admissionv1.Update,
}

func validateOperations(c *rule.Check, r *admissionv1.RuleWithOperations) {
	at := c.At("operations")
	alone(at, r.Operations, "operations")
	for i, op := range r.Operations {
		if !slices.Contains(operations, op) {
			rule.NotSupported(at.At(i), op, operations...)
		}
	}
	alone(c.At("apiGroups"), r.APIGroups, "API groups")
	alone(c.At("apiVersions"), r.APIVersions, "API versions")
	named(c.At("apiVersions"), r.APIVersions)
	validateResources(c.At("resources"), r.Resources)
}

// alone rejects an empty list, and a wildcard beside other entries.
func alone[T ~string](c *rule.Check, list []T, of string) {
	if len(list) == 0 {
		c.Required("")
	}
	if len(list) > 1 && slices.Contains(list, all) {
		c.Invalid(list, fmt.Sprintf("if '*' is present, must not specify other %s", of))
	}
}

func named(c *rule.Check, list []string) {
	for i, name := range list {
		if name == "" {
			c.At(i).Required("")
		}
	}
}

// validateResources rejects entries that an earlier entry includes.
func validateResources(c *rule.Check, resources []string) {
	if len(resources) == 0 {
		c.Required("")
	}
	named(c, resources)
	whole, everywhere := map[string]bool{}, map[string]bool{}
	lastAlone := false // as in Kubernetes, the last resource without a subresource decides
	for i, r := range resources {
		name, sub, ok := strings.Cut(r, "/")
		if !ok {
			lastAlone = r != "" && r != all || r == "" && lastAlone
			continue
		}
		if whole[name] {
			c.At(i).Invalid(r, fmt.Sprintf("if '%s/*' is present, must not specify %s", name, r))
		}
		if everywhere[sub] {
			c.At(i).Invalid(r, fmt.Sprintf("if '*/%s' is present, must not specify %s", sub, r))
		}
		if sub == all {
			whole[name] = true
		}
		if name == all {
			everywhere[sub] = true
		}
	}
	if len(resources) > 1 && slices.Contains(resources, "*/*") {
		c.Invalid(resources, "if '*/*' is present, must not specify other resources")
	}
	if lastAlone && slices.Contains(resources, all) {
		c.Invalid(resources, "if '*' is present, must not specify other resources without subresources")
	}
}

func validateResourceNames(c *rule.Check, r *admissionv1.NamedRuleWithOperations) {
	for i, name := range r.ResourceNames {
		at := c.At("resourceNames", i)
		at.Invalids(name, content.IsPathSegmentName(name))
		if slices.Contains(r.ResourceNames[:i], name) {
			at.Duplicate(name)
		}
	}
}

func validateParamKind(c *rule.Check, p *admissionv1.ParamKind) {
	at := c.At("apiVersion")
	group, version, ok := strings.Cut(p.APIVersion, "/")
	if !ok {
		group, version = "", p.APIVersion
	}
	switch {
	case p.APIVersion == "":
		at.Required("")
	case strings.Contains(version, "/"):
		at.Invalid(p.APIVersion, fmt.Sprintf("unexpected GroupVersion string: %v", p.APIVersion))
	default:
		if bad := validation.IsDNS1123Subdomain(group); group != "" && len(bad) > 0 {
			at.Invalid(group, strings.Join(bad, ","))
		}
		if version == "" {
			at.Invalid(p.APIVersion, "version must be specified")
		} else if bad := validation.IsDNS1035Label(version); len(bad) > 0 {
			at.Invalid(version, strings.Join(bad, ","))
		}
	}
	if at = c.At("kind"); p.Kind == "" {
		at.Required("")
	} else if bad := validation.IsDNS1035Label(strings.ToLower(p.Kind)); len(bad) > 0 {
		at.Invalid(p.Kind, "may have mixed case, but should otherwise match: "+strings.Join(bad, ","))
	}
}

func validateParamRef(c *rule.Check, p *admissionv1.ParamRef) {
	const one = "name and selector are mutually exclusive"
	if p.Name != "" {
		c.At("name").Invalids(p.Name, content.IsPathSegmentName(p.Name))
	}
	if p.Selector != nil {
		c.Add(selectorErrors(c.At("selector"), p.Selector, false)...)
	}
	switch {
	case p.Name != "" && p.Selector != nil:
		c.At("name").Forbidden(one)
		c.At("selector").Forbidden(one)
	case p.Name == "" && p.Selector == nil:
		c.Required("one of name or selector must be specified")
	}
	at := c.At("parameterNotFoundAction")
	switch action := p.ParameterNotFoundAction; {
	case action == nil || *action == "":
		at.Required("")
	case *action != admissionv1.DenyAction && *action != admissionv1.AllowAction:
		rule.NotSupported(at, *action, admissionv1.DenyAction, admissionv1.AllowAction)
	}
}

// static ends names that are reserved for objects in files.
const static = ".static.k8s.io"

const reservedName = `names ending with "` + static + `" are reserved for static manifest-based configurations and cannot be managed via the API`

// validateName rejects a new object with a reserved name.
func validateName(c *rule.Check, obj metav1.Object) {
	if !c.IsUpdate() && c.Gates.On(gate.ManifestBasedAdmissionControlConfig) && strings.HasSuffix(obj.GetName(), static) {
		c.At("metadata", "name").Invalid(obj.GetName(), reservedName)
	}
}

// warnOfName warns about an existing object with a reserved name, and about a new one if
// ManifestBasedAdmissionControlConfig is off.
func warnOfName[T any](c *rule.Check, obj, _ *T) {
	allowed := c.IsUpdate() || !c.Gates.On(gate.ManifestBasedAdmissionControlConfig)
	if meta, ok := any(obj).(metav1.Object); ok && allowed && strings.HasSuffix(meta.GetName(), static) {
		c.Warn("metadata.name: %s", reservedName)
	}
}
