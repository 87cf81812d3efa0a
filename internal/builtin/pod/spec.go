package pod

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// specRules are the rules and defaults for types in a spec, except containers and volumes.
var specRules = rule.All(
	rule.Default[corev1.PodSpec](defaultSpec),
	rule.On(checkSpec),
	rule.On(checkPodSecurity),
	rule.On(checkNodeAffinity),
	rule.On(checkPodAffinityTerm),
	rule.On(checkWeightedTerm),
	rule.On(checkSpread),
	rule.On(checkToleration),
	rule.On(checkHostAlias),
)

// checkSpec validates a spec after giveContext.
func checkSpec(c *rule.Check, spec *corev1.PodSpec) {
	checkContainerLists(c, spec)
	if spec.Overhead != nil {
		checkResources(c.At("overhead"), &corev1.ResourceRequirements{Limits: spec.Overhead}, kind.ValidateContainerResource, rule.Given[podContext](c))
	}
	checkPodClaims(c.At("resourceClaims"), spec.ResourceClaims)
	known(c.At("restartPolicy"), spec.RestartPolicy, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	checkPreemption(c.At("preemptionPolicy"), spec.PreemptionPolicy)
	checkNetwork(c, spec)
	checkGates(c, spec)
	for i := range spec.TopologySpreadConstraints {
		checkSpreadOnce(c.At("topologySpreadConstraints", i), spec.TopologySpreadConstraints[i:])
	}
	if s := spec.ShareProcessNamespace; s != nil && *s && spec.HostPID {
		c.At("shareProcessNamespace").Invalid(true, "ShareProcessNamespace and HostPID cannot both be enabled")
	}
	if !hostUsers(spec) {
		checkOwnUsers(c, spec)
	}
	if spec.DeprecatedServiceAccount != spec.ServiceAccountName { //nolint:staticcheck // it is a field of the wire
		c.At("deprecatedServiceAccount").Invalid(spec.DeprecatedServiceAccount, "must be the same as serviceAccountName: \""+spec.ServiceAccountName+"\"")
	}
	if n := spec.ActiveDeadlineSeconds; n != nil && (*n < 1 || *n > math.MaxInt32) {
		c.At("activeDeadlineSeconds").Invalid(*n, validation.InclusiveRangeError(1, math.MaxInt32))
	}
	checkSysctls(c.At("securityContext", "sysctls"), spec)
	checkHostProcesses(c, spec)
	checkOS(c, spec)
	checkGroup(c.At("schedulingGroup"), spec)
}

// checkGroup validates the group of a pod.
func checkGroup(c *rule.Check, spec *corev1.PodSpec) {
	if spec.SchedulingGroup == nil {
		return
	}
	if name := spec.SchedulingGroup.PodGroupName; name == nil {
		c.At("podGroupName").Invalid(nil, "must specify one of: `podGroupName`")
	} else {
		c.At("podGroupName").Invalids(*name, validation.IsDNS1123Subdomain(*name))
	}
	if len(spec.EvictionResponders) > 0 {
		c.Forbidden("may not be set when evictionResponders is set")
	}
}

// checkPodClaims validates the resource claims of a pod.
func checkPodClaims(c *rule.Check, claims []corev1.PodResourceClaim) {
	names := sets.New[string]()
	for i, claim := range claims {
		if rule.Given[inherited](c).mirror {
			c.Add(field.Forbidden(field.NewPath(""), "static pods do not support resource claims"))
			continue
		}
		at := c.At(i)
		switch name := at.At("name"); {
		case claim.Name == "":
			name.Required("")
		case names.Has(claim.Name):
			name.Duplicate(claim.Name)
		default:
			name.Invalids(claim.Name, validation.IsDNS1123Label(claim.Name))
			names.Insert(claim.Name)
		}
		switch byName, byTemplate := claim.ResourceClaimName != nil, claim.ResourceClaimTemplateName != nil; {
		case byName && byTemplate:
			at.Invalid(claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
		case !byName && !byTemplate:
			at.Invalid(claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
		}
	}
}

func checkPreemption(c *rule.Check, policy *corev1.PreemptionPolicy) {
	switch {
	case policy == nil:
	case *policy == "":
		c.Required("")
	default:
		known(c, *policy, corev1.PreemptLowerPriority, corev1.PreemptNever)
	}
}

// checkGates validates the scheduling gates of a pod.
func checkGates(c *rule.Check, spec *corev1.PodSpec) {
	for i, g := range spec.ReadinessGates {
		name := string(g.ConditionType)
		c.At("readinessGates", i, "conditionType").Invalids(name, validation.IsQualifiedName(name))
	}
	names := sets.New[string]()
	for i, g := range spec.SchedulingGates {
		at := c.At("schedulingGates", i)
		at.Invalids(g.Name, validation.IsQualifiedName(g.Name))
		if names.Has(g.Name) {
			at.Duplicate(g.Name)
		}
		names.Insert(g.Name)
	}
}
