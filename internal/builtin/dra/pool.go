package dra

import (
	"fmt"
	"strconv"

	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

// poolRequests returns the kind of one-time queries for the free devices of pools.
func poolRequests() *resource.Definition {
	count := func(devices func(p resourcev1alpha3.PoolStatus) *int32) func(map[string]any) any {
		return func(obj map[string]any) any { return sumOfPools(obj, devices) }
	}
	return kind.Kind[*resourcev1alpha3.ResourcePoolStatusRequest, *resourcev1alpha3.ResourcePoolStatusRequestList]{
		Definition: resource.Definition{
			Group: resourcev1alpha3.GroupName, Plural: "resourcepoolstatusrequests", ReturnsDeleted: true,
		},
		Version:          &resource.Version{Name: "v1alpha3"},
		StatusKeeps:      "spec metadata",
		StatusHasNoTable: true,
		Rules:            rules, Validate: validatePoolRequest, ValidateStatus: validatePoolRequestStatus,
		Columns: `
			Driver       string   .spec.driver  "The driver to query pools for."
			Total        string   total         "Total number of devices across all pools."
			Available    string   available     "Number of available devices across all pools."
			Allocated    string   allocated     "Number of allocated devices across all pools."
			Unavailable  string   unavailable   "Number of unavailable devices across all pools."
			Errors       string   errors        "Number of pools with validation errors."
			Pools        integer  pools         "Total number of matching pools."
			Status       string   state         "Processing status."
			Completed    string   completed     "Time since the observation completed."
		`,
		Cells: kind.Cells{
			"total":       count(func(p resourcev1alpha3.PoolStatus) *int32 { return p.TotalDevices }),
			"available":   count(func(p resourcev1alpha3.PoolStatus) *int32 { return p.AvailableDevices }),
			"allocated":   count(func(p resourcev1alpha3.PoolStatus) *int32 { return p.AllocatedDevices }),
			"unavailable": count(func(p resourcev1alpha3.PoolStatus) *int32 { return p.UnavailableDevices }),
			"errors": count(func(p resourcev1alpha3.PoolStatus) *int32 {
				if p.ValidationError == nil {
					return nil
				}
				return new(int32(1))
			}),
			"pools":     func(obj map[string]any) any { return int64(poolsOf(poolStatusOf(obj))) },
			"state":     stateOfPools,
			"completed": completionOfPools,
		},
	}.New()
}

func validatePoolRequest(c *rule.Check, r, old *resourcev1alpha3.ResourcePoolStatusRequest) {
	switch {
	case old == nil:
		c.Walk(&r.Spec, "spec")
	default:
		c.At("spec").Unchanged(r.Spec, old.Spec)
	}
}

// validatePoolRequestStatus allows no change of an existing status.
func validatePoolRequestStatus(c *rule.Check, r, old *resourcev1alpha3.ResourcePoolStatusRequest) {
	at := c.At("status")
	if r.Status != nil && !equality.Semantic.DeepEqual(r.Status, old.Status) {
		c.Walk(r.Status, "status")
	}
	switch {
	case old.Status != nil:
		at.Immutable(r.Status, old.Status)
	case r.Status != nil:
		at.At("conditions").Conditions(r.Status.Conditions)
	}
}

// poolRules are rules of the Go types that the table cannot express.
var poolRules = rule.All(
	rule.On(func(c *rule.Check, s *resourcev1alpha3.ResourcePoolStatusRequestSpec) {
		validateDriverAndPool(c, s.Driver, s.PoolName)
		at := c.At("defaultPartitionTypeAttribute").Path()
		c.Add(validate.ResourceFullyQualifiedName(c, operation.Operation{}, at, s.DefaultPartitionTypeAttribute, nil)...)
	}),
	rule.On(func(c *rule.Check, s *resourcev1alpha3.ResourcePoolStatusRequestStatus) {
		requireCounts(c, counts{"poolCount": s.PoolCount})
	}),
	rule.On(func(c *rule.Check, p *resourcev1alpha3.PoolStatus) {
		name := &p.PoolName
		if p.PoolName == "" {
			c.At("poolName").Required("")
			name = nil
		}
		validateDriverAndPool(c, p.Driver, name)
		c.Add(validate.LongName(c, operation.Operation{}, c.At("nodeName").Path(), p.NodeName, nil)...)
	}),
	rule.On(func(c *rule.Check, s *resourcev1alpha3.PartitionTypeStatus) {
		requireCounts(c, counts{"total": s.Total, "allocatable": s.Allocatable})
	}),
	rule.On(func(c *rule.Check, s *resourcev1alpha3.ShareableSummaryStatus) {
		requireCounts(c, counts{"fullyAvailableDevices": s.FullyAvailableDevices, "partiallyAvailableDevices": s.PartiallyAvailableDevices})
	}),
	rule.On(func(c *rule.Check, s *resourcev1alpha3.ShareableCapacityStatus) {
		for name, missing := range map[string]bool{"total": s.Total == nil, "consumed": s.Consumed == nil, "available": s.Available == nil} {
			if missing {
				c.At(name).Required("")
			}
		}
	}),
)

func validateDriverAndPool(c *rule.Check, driver string, pool *string) {
	at := c.At("driver").Path()
	if driver == "" {
		c.Add(field.Required(at, ""))
	} else {
		//lint:ignore SA1019 as Kubernetes does
		c.Add(validate.LongNameCaseless(c, operation.Operation{}, at, &driver, nil)...)
	}
	c.Add(validate.ResourcePoolName(c, operation.Operation{}, c.At("poolName").Path(), pool, nil)...)
}

// counts are numbers by field name.
type counts map[string]*int32

func requireCounts(c *rule.Check, all counts) {
	for _, name := range kind.SortedKeys(all) {
		if all[name] == nil {
			c.At(name).Required("")
		}
	}
}

func poolStatusOf(obj map[string]any) *resourcev1alpha3.ResourcePoolStatusRequestStatus {
	return kind.ValueOf[resourcev1alpha3.ResourcePoolStatusRequest](obj).Status
}

func poolsOf(s *resourcev1alpha3.ResourcePoolStatusRequestStatus) int32 {
	if s == nil || s.PoolCount == nil {
		return 0
	}
	return *s.PoolCount
}

// outcomeOfPools returns the final condition, if present.
func outcomeOfPools(s *resourcev1alpha3.ResourcePoolStatusRequestStatus) (outcome metav1.Condition) {
	if s == nil {
		return outcome
	}
	for _, c := range s.Conditions {
		known := c.Type == resourcev1alpha3.ResourcePoolStatusRequestConditionComplete || c.Type == resourcev1alpha3.ResourcePoolStatusRequestConditionFailed
		if known && c.Status == metav1.ConditionTrue {
			return c
		}
	}
	return outcome
}

// sumOfPools returns the total of a number over all pools, as a text.
func sumOfPools(obj map[string]any, devices func(p resourcev1alpha3.PoolStatus) *int32) any {
	s := poolStatusOf(obj)
	if s == nil || outcomeOfPools(s).Type == resourcev1alpha3.ResourcePoolStatusRequestConditionFailed {
		return "-"
	}
	var sum int32
	for _, p := range s.Pools {
		if n := devices(p); n != nil {
			sum += *n
		}
	}
	return strconv.Itoa(int(sum))
}

func stateOfPools(obj map[string]any) any {
	s := poolStatusOf(obj)
	state := outcomeOfPools(s).Type
	switch {
	case state == "":
		return "Pending"
	case state == resourcev1alpha3.ResourcePoolStatusRequestConditionComplete && int(poolsOf(s)) > len(s.Pools):
		return fmt.Sprintf("%s (%d/%d pools)", state, len(s.Pools), poolsOf(s))
	}
	return state
}

func completionOfPools(obj map[string]any) any {
	c := outcomeOfPools(poolStatusOf(obj))
	if c.Type != resourcev1alpha3.ResourcePoolStatusRequestConditionComplete {
		return "<none>"
	}
	if c.LastTransitionTime.IsZero() {
		return "<unknown>"
	}
	return view.Age(c.LastTransitionTime.UTC().Format("2006-01-02T15:04:05Z07:00"))
}
