// Package apiregistration has the built-in kind APIService of apiregistration.k8s.io.
//
// It validates APIServices. internal/controller/apiservice creates those of the server itself.
package apiregistration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Group is the API group.
const Group = "apiregistration.k8s.io"

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{apiServices()}
}

func apiServices() *resource.Definition {
	return kind.Kind[*apiregistrationv1.APIService, *apiregistrationv1.APIServiceList]{
		Definition: resource.Definition{
			Group: Group, Plural: "apiservices", Categories: []string{"api-extensions"},
			StoragePrefix: resource.CustomPrefix(Group, "apiservices"),
			Strategy: resource.Strategy{
				Prepare: prepare, ValidateName: func(name string, _ bool) []string { return content.IsPathSegmentName(name) },
			},
		},
		StatusKeeps:      "spec metadata",
		StatusHasNoTable: true,
		AnyFinalizers:    true,
		Validate:         validate, ValidateStatus: validateStatus,
		Columns: `
			Service    string  service    "The reference to the service that hosts this API endpoint."
			Available  string  available  "Whether this service is available."
			Age
		`,
		Cells: kind.Cells{"service": service, "available": available},
	}.New()
}

func service(obj map[string]any) any {
	of := kind.Tree(obj, "spec", "service")
	if of == nil {
		return "Local"
	}
	return kind.Text(of, "namespace") + "/" + kind.Text(of, "name")
}

func available(obj map[string]any) any {
	for _, one := range kind.List(obj, "status", "conditions") {
		condition, _ := one.(map[string]any)
		if kind.Text(condition, "type") != string(apiregistrationv1.Available) {
			continue
		}
		is, why := kind.Text(condition, "status"), kind.Text(condition, "reason")
		if is == string(apiregistrationv1.ConditionTrue) || why == "" {
			return is
		}
		return fmt.Sprintf("%s (%s)", is, why)
	}
	return string(apiregistrationv1.ConditionUnknown)
}

// prepare sets a new local APIService to Available.
func prepare(_ context.Context, c *resource.Change) {
	if c.Old != nil || kind.Tree(c.Object, "spec", "service") != nil {
		return
	}
	kind.Put(c.Object, "status", map[string]any{"conditions": []any{map[string]any{
		"type": string(apiregistrationv1.Available), "status": string(apiregistrationv1.ConditionTrue),
		"reason": "Local", "message": "Local APIServices are always available",
		"lastTransitionTime": object.Timestamp(time.Now()),
	}}})
}

const (
	highestGroup   = 20000
	highestVersion = 1000
)

func validate(c *rule.Check, obj, _ *apiregistrationv1.APIService) {
	spec, at := &obj.Spec, c.At("spec")
	named := func(name string) []string {
		if want := spec.Version + "." + spec.Group; name != want && len(content.IsPathSegmentName(name)) == 0 {
			return []string{fmt.Sprintf("must be `spec.version+\".\"+spec.group`: %q", want)}
		}
		return nil
	}
	for field, name := range map[string]string{"name": obj.Name, "generateName": obj.GenerateName} {
		if name != "" {
			c.At("metadata", field).Invalids(name, named(name))
		}
	}
	switch {
	case spec.Group != "":
		at.At("group").Invalids(spec.Group, validation.IsDNS1123Subdomain(spec.Group))
	case spec.Version != "v1":
		at.At("group").Required("only v1 may have an empty group and it better be legacy kube")
	}
	at.At("version").Invalids(spec.Version, validation.IsDNS1035Label(spec.Version))
	if p := spec.GroupPriorityMinimum; p <= 0 || p > highestGroup {
		at.At("groupPriorityMinimum").Invalid(p, fmt.Sprintf("must be positive and less than %d", highestGroup))
	}
	if p := spec.VersionPriority; p <= 0 || p > highestVersion {
		at.At("versionPriority").Invalid(p, fmt.Sprintf("must be positive and less than %d", highestVersion))
	}
	if spec.Service == nil {
		if len(spec.CABundle) > 0 {
			at.At("caBundle").Invalid(fmt.Sprintf("%d bytes", len(spec.CABundle)), "local APIServices may not have a caBundle")
		}
		if spec.InsecureSkipTLSVerify {
			at.At("insecureSkipTLSVerify").Invalid(true, "local APIServices may not have insecureSkipTLSVerify")
		}
		return
	}
	validateService(at.At("service"), spec.Service)
	if spec.InsecureSkipTLSVerify && len(spec.CABundle) > 0 {
		at.At("insecureSkipTLSVerify").Invalid(true, "may not be true if caBundle is present")
	}
}

func validateService(c *rule.Check, s *apiregistrationv1.ServiceReference) {
	if s.Namespace == "" {
		c.At("namespace").Required("")
	}
	if s.Name == "" {
		c.At("name").Required("")
	}
	if bad := validation.IsValidPortNum(int(*s.Port)); bad != nil {
		c.At("port").Invalid(*s.Port, "port is not valid: "+strings.Join(bad, ", "))
	}
}

func validateStatus(c *rule.Check, obj, _ *apiregistrationv1.APIService) {
	known := []apiregistrationv1.ConditionStatus{apiregistrationv1.ConditionTrue, apiregistrationv1.ConditionFalse, apiregistrationv1.ConditionUnknown}
	for i, condition := range obj.Status.Conditions {
		switch condition.Status {
		case known[0], known[1], known[2]:
		default:
			at := c.At("status", "conditions", i, "status")
			at.Add(field.NotSupported(at.Path(), condition.Status, known))
		}
	}
}
