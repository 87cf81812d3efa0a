package dra

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	devicecel "k8s.io/dynamic-resource-allocation/cel"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// A derivation validates the derived attributes of the requests of a claim.
type derivation struct {
	// constrained are the attributes that constraints compare, by the request or subrequest of a constraint.
	// The empty name is for constraints of all requests.
	constrained map[string][]string
	// cost is the estimated cost of all expressions.
	cost uint64
}

func newDerivation(claim *resourcev1.DeviceClaim) *derivation {
	d := &derivation{constrained: map[string][]string{}}
	for _, c := range claim.Constraints {
		name := c.MatchAttribute
		if name == nil {
			name = c.DistinctAttribute
		}
		if name == nil {
			continue
		}
		requests := c.Requests
		if len(requests) == 0 {
			requests = []string{""}
		}
		for _, r := range requests {
			d.constrained[r] = append(d.constrained[r], string(*name))
		}
	}
	return d
}

// validate validates the derived attributes of a request, or of a subrequest after its request and a slash.
func (d *derivation) validate(c *rule.Check, attributes []resourcev1.DeviceDerivedAttribute, request string) {
	var names []string
	for i, a := range attributes {
		at, name := c.At(i), string(a.Name)
		names = append(names, name)
		if name != "" && !d.isConstrained(name, request) {
			at.At("name").Invalid(a.Name, "must be referenced by at least one matchAttribute or distinctAttribute constraint targeting this request")
		}
		if a.Expression != "" {
			d.cost += validateExpression(at.At("expression"), a.Expression, devicecel.Options{DerivedAttribute: true},
				min(resourcev1.CELSelectorExpressionMaxCost, resourcev1.DeviceClaimDerivedAttributeCELMaxCost))
		}
	}
	unique(c, false, names...)
}

func (d *derivation) isConstrained(attribute, request string) bool {
	parent, _, _ := strings.Cut(request, "/")
	return slices.ContainsFunc([]string{"", parent, request}, func(r string) bool {
		return slices.Contains(d.constrained[r], attribute)
	})
}

// limitCost limits the cost of all expressions of a claim.
func (d *derivation) limitCost(c *rule.Check) {
	if d.cost > resourcev1.DeviceClaimDerivedAttributeCELMaxCost {
		c.Forbidden("too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit")
	}
}
