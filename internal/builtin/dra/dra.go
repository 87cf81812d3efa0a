// Package dra has the built-in kinds of resource.k8s.io for dynamic resource allocation: devices
// and claims.
//
// It validates them. A scheduler allocates devices.
package dra

import (
	"fmt"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group. namespaces is the kind Namespace. The authorizer
// checks permissions for parts of a claim's status.
func Definitions(namespaces *resource.Definition, authorizer authz.Authorizer) []*resource.Definition {
	a := admins{namespaces, access{authorizer}}
	return []*resource.Definition{deviceClasses(), taintRules(), claims(a), claimTemplates(a), resourceSlices(), poolRequests()}
}

// beta2 is the package of v1beta2, whose types are those of v1.
const beta2 = "k8s.io/api/resource/v1beta2"

func beta2Life() kind.Life { return kind.Life{Introduced: 33, Deprecated: 36, Removed: 39} }

var rules = rule.Lazy(
	rule.Default[resourcev1.ExactDeviceRequest](defaultRequest),
	rule.Default[resourcev1.DeviceSubRequest](defaultRequest),
	rule.Default[resourcev1.DeviceTaint](defaultTaint),
	rule.Default[resourcev1beta1.DeviceRequest](func(r map[string]any) {
		if kind.Text(r, "deviceClassName") != "" {
			defaultRequest(r)
		}
	}),
	rule.Default[resourcev1beta1.DeviceSubRequest](defaultRequest),
	rule.Default[resourcev1beta1.DeviceTaint](defaultTaint),
	poolRules,
)

// defaultTaint sets timeAdded to now. It keeps a null: the zero time of a client.
func defaultTaint(taint map[string]any) {
	if _, given := taint["timeAdded"]; !given {
		taint["timeAdded"] = object.Timestamp(time.Now())
	}
}

// defaultRequest sets the count of a request to one.
func defaultRequest(r map[string]any) {
	kind.SetDefault(r, "allocationMode", string(resourcev1.DeviceAllocationModeExactCount))
	if n, _ := r["count"].(int64); n == 0 && kind.Text(r, "allocationMode") == string(resourcev1.DeviceAllocationModeExactCount) {
		r["count"] = int64(1)
	}
}

func deviceClasses() *resource.Definition {
	return kind.Kind[*resourcev1.DeviceClass, *resourcev1.DeviceClassList]{
		Definition: resource.Definition{
			Group: resourcev1.GroupName, Plural: "deviceclasses", HasGeneration: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, ValidateName: validateClassName},
		},
		Rules: rules, Validate: validateClass,
		Columns: `Age`,
	}.New(
		kind.Renamed("v1beta2", beta2, beta2Life()),
		kind.Like[*resourcev1beta1.DeviceClass, *resourcev1beta1.DeviceClassList]("v1beta1"),
	)
}

func taintRules() *resource.Definition {
	return kind.Kind[*resourcev1.DeviceTaintRule, *resourcev1.DeviceTaintRuleList]{
		Definition: resource.Definition{
			Group: resourcev1.GroupName, Plural: "devicetaintrules", HasGeneration: true,
			Strategy: resource.Strategy{Prepare: prepareTaintRule},
		},
		StatusKeeps:      "spec metadata",
		StatusHasNoTable: true,
		Rules:            rules, Validate: validateTaintRule, ValidateStatus: validateTaintRuleStatus,
		Columns: `
			Key        string  .spec.taint.key
			Value      string  .spec.taint.value
			Effect     string  .spec.taint.effect
			TimeAdded  string  added  .spec.taint.timeAdded
			Age
		`,
		Cells: kind.Cells{"added": timeAdded},
	}.New(
		kind.Renamed("v1beta2", beta2, kind.Life{Introduced: 36, Deprecated: 39, Removed: 42}).Stored().Lenient(),
		kind.Like[*resourcev1alpha3.DeviceTaintRule, *resourcev1alpha3.DeviceTaintRuleList]("v1alpha3").Lenient(),
	)
}

func timeAdded(obj map[string]any) any {
	taint := kind.Tree(obj, "spec", "taint")
	if _, given := taint["timeAdded"]; !given {
		return ""
	}
	return kind.Age(kind.Text(taint, "timeAdded")) // a null is the zero time of a client
}

func claims(a admins) *resource.Definition {
	return kind.Kind[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList]{
		Definition: resource.Definition{
			Group: resourcev1.GroupName, Plural: "resourceclaims", Namespaced: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, Prepare: prepareClaim},
		},
		StatusKeeps:      "spec metadata",
		StatusHasNoTable: true,
		Rules:            rules, Validate: a.validateClaim, ValidateStatus: a.validateClaimStatus,
		Columns: `
			State  string  state  "A summary of the current state (allocated, pending, reserved, etc.)."
			Age
		`,
		Cells: kind.Cells{"state": stateOfClaim},
	}.New(
		kind.Renamed("v1beta2", beta2, beta2Life()),
		kind.Shaped[*resourcev1beta1.ResourceClaim, *resourcev1beta1.ResourceClaimList]("v1beta1", eachRequest(gather), eachRequest(spread)),
	)
}

func stateOfClaim(obj map[string]any) any {
	var states []string
	deleted := object.MetaString(obj, "deletionTimestamp") != ""
	if deleted {
		states = append(states, "deleted")
	}
	switch {
	case kind.Tree(obj, "status", "allocation") != nil:
		states = append(states, "allocated")
		if len(kind.List(obj, "status", "reservedFor")) > 0 {
			states = append(states, "reserved")
		}
	case !deleted:
		states = append(states, "pending")
	}
	return strings.Join(states, ",")
}

func claimTemplates(a admins) *resource.Definition {
	return kind.Kind[*resourcev1.ResourceClaimTemplate, *resourcev1.ResourceClaimTemplateList]{
		Definition: resource.Definition{
			Group: resourcev1.GroupName, Plural: "resourceclaimtemplates", Namespaced: true, ReturnsDeleted: true,
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Rules: rules, Validate: a.validateTemplate,
		Columns: `Age`,
	}.New(
		kind.Renamed("v1beta2", beta2, beta2Life()),
		kind.Shaped[*resourcev1beta1.ResourceClaimTemplate, *resourcev1beta1.ResourceClaimTemplateList]("v1beta1", eachRequest(gather), eachRequest(spread)),
	)
}

func resourceSlices() *resource.Definition {
	return kind.Kind[*resourcev1.ResourceSlice, *resourcev1.ResourceSliceList]{
		Definition: resource.Definition{
			Group: resourcev1.GroupName, Plural: "resourceslices", HasGeneration: true, CountsDropped: true, ReturnsDeleted: true,
			LabelError: func(apiVersion, label string) string {
				return fmt.Sprintf("field label not supported for %s, Kind=ResourceSlice: %s", apiVersion, label)
			},
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		Rules: rules, Validate: validateSlice, Warn: warnOfSlice,
		Columns: `
			Node    string  .spec.nodeName
			Driver  string  .spec.driver
			Pool    string  .spec.pool.name
			Age
		`,
		Select: "spec.nodeName spec.driver spec.pool.name",
	}.New(
		kind.Renamed("v1beta2", beta2, beta2Life()),
		kind.Shaped[*resourcev1beta1.ResourceSlice, *resourcev1beta1.ResourceSliceList]("v1beta1", eachDevice(unpack), eachDevice(pack)),
	)
}
