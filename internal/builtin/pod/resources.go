package pod

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// checkResources validates the resources of a container or a pod. checkName validates their names.
func checkResources(c *rule.Check, r *corev1.ResourceRequirements, checkName func(*rule.Check, corev1.ResourceName), pod *podContext) {
	hugePages, others := false, false
	checkList := func(field string, list corev1.ResourceList) {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			at := c.At(field).AtKey(string(name))
			checkName(at, name)
			kind.ValidateAmountOf(at, name, list[name])
			if amount := list[name]; !isDivisible(name, amount) && !pod.allowed.indivisibleHugePages {
				at.Invalid(amount.String(), fmt.Sprintf("%s is not positive integer multiple of %s", amount.String(), name))
			}
			hugePages = hugePages || kind.IsHugePages(name)
			others = others || name == corev1.ResourceCPU || name == corev1.ResourceMemory
		}
	}
	checkList("limits", r.Limits)
	checkList("requests", r.Requests)
	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		checkRequest(c, name, r)
	}
	if hugePages && !others {
		c.Forbidden("HugePages require cpu or memory")
	}
	checkClaimNames(c.At("claims"), r.Claims, pod)
}

// checkRequest compares a request with the limit. Errors name the list.
func checkRequest(c *rule.Check, name corev1.ResourceName, r *corev1.ResourceRequirements) {
	request := r.Requests[name]
	limit, ok := r.Limits[name]
	exact := !kind.IsNative(name) || kind.IsHugePages(name) // resources without overcommitment
	switch {
	case !ok && exact:
		c.At("limits").Required("Limit must be set for non overcommitable resources")
	case !ok:
	case exact && request.Cmp(limit) != 0:
		c.At("requests").Invalid(request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String()))
	case request.Cmp(limit) > 0:
		c.At("requests").Invalid(request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String()))
	}
}

// checkClaimNames checks that the claims of a container are those of the pod. Errors name the
// element.
func checkClaimNames(c *rule.Check, claims []corev1.ResourceClaim, pod *podContext) {
	if len(claims) == 0 {
		return
	}
	ofPod := sets.New[string]()
	for i := range pod.spec.ResourceClaims {
		ofPod.Insert(pod.spec.ResourceClaims[i].Name)
	}
	ofPod.Delete("")
	detail := "must be one of the names in pod.spec.resourceClaims which is empty"
	if len(ofPod) > 0 {
		detail = "must be one of the names in pod.spec.resourceClaims: " + strings.Join(sets.List(ofPod), ", ")
	}
	seen := sets.New[string]()
	for i, claim := range claims {
		at := c.At(i)
		if claim.Name == "" {
			at.Required("")
			continue
		}
		checkClaimOnce(at, claim, seen)
		if !ofPod.Has(claim.Name) {
			err := field.NotFound(at.Path(), claim.Name)
			err.Detail = detail
			c.Add(err)
		}
	}
}

// checkClaimOnce rejects a duplicate claim or request. seen has names, and requests as
// NAME/REQUEST.
func checkClaimOnce(c *rule.Check, claim corev1.ResourceClaim, seen sets.Set[string]) {
	if seen.Has(claim.Name) {
		c.Duplicate(claim.Name)
		return
	}
	key := claim.Name
	if claim.Request != "" {
		c.At("request").Invalids(claim.Request, validation.IsDNS1123Label(claim.Request))
		key += "/" + claim.Request
	}
	if seen.Has(key) {
		c.Duplicate(key)
	}
	for other := range seen {
		if name, _, ok := strings.Cut(other, "/"); ok && name == key {
			c.Duplicate(key)
		}
	}
	seen.Insert(key)
}

// checkPodResources validates the pod-level resources of a spec. c is at them.
func checkPodResources(c *rule.Check, spec *corev1.PodSpec) {
	whole := spec.Resources
	if spec.OS != nil && spec.OS.Name == corev1.Windows {
		c.Forbidden("may not be set for a windows pod")
		return
	}
	if whole.Claims != nil {
		c.At("claims").Forbidden("claims may not be set for Resources at pod-level")
	}
	checkResources(c, whole, podResourceName, rule.Given[podContext](c))
	checkSum(c, "requests", whole.Requests, Requests(spec))
	limits := Limits(spec)
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool { return !kind.IsHugePages(name) })
	checkSum(c, "limits", whole.Limits, limits)
	for i := range spec.Containers {
		limits := spec.Containers[i].Resources.Limits
		for _, name := range slices.Sorted(maps.Keys(limits)) {
			limit, most := limits[name], whole.Limits[name]
			if _, ok := whole.Limits[name]; ok && limit.Cmp(most) > 0 {
				c.At("containers", i).AtKey(string(name)).At("limits").
					Invalid(limit.String(), fmt.Sprintf("must be less than or equal to pod limits of %s", most.String()))
			}
		}
	}
}

// checkSum rejects pod-level amounts less than the sum of the containers.
func checkSum(c *rule.Check, field string, whole, parts corev1.ResourceList) {
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		sum, have := parts[name], whole[name]
		if _, ok := whole[name]; ok && sum.Cmp(have) > 0 {
			c.At(field).AtKey(string(name)).Invalid(have.String(),
				fmt.Sprintf("must be greater than or equal to aggregate container %s of %s", field, sum.String()))
		}
	}
}

func podResourceName(c *rule.Check, name corev1.ResourceName) {
	before := len(c.Errors())
	kind.ValidateResourceName(c, name)
	if len(c.Errors()) == before && !isPodResource(name) {
		known(c, name, corev1.ResourceCPU, corev1.ResourceHugePagesPrefix, corev1.ResourceMemory)
	}
}

// isDivisible reports whether an amount of huge pages is a multiple of the page size. It is true
// for other resources.
func isDivisible(name corev1.ResourceName, amount resource.Quantity) bool {
	if !kind.IsHugePages(name) {
		return true
	}
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	return err == nil && size.Sign() > 0 && !isFractional(size) && amount.Value()%size.Value() == 0
}

// isFractional reports whether an amount is not an integer.
func isFractional(amount resource.Quantity) bool { return amount.MilliValue()%1000 != 0 }
