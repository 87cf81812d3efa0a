package usage

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
)

// claimEvaluator returns the Evaluator of ResourceClaims. What they use has other names, too, by the
// device classes that there are.
func (e *Evaluators) claimEvaluator(ctx context.Context) (Evaluator, error) {
	classes, err := e.classes.List(ctx, "")
	if err != nil {
		return nil, err
	}
	of := claimEvaluator{Evaluators: e, extended: map[string]string{}, known: map[string]bool{}}
	for _, c := range classes {
		of.known[ofClass+c.Name] = true
		if name := text(c.Spec.ExtendedResourceName); name != "" {
			of.extended[c.Name], of.known[name] = name, true
		}
	}
	return of, nil
}

type claimEvaluator struct {
	*Evaluators
	extended map[string]string // the extended resource that a class is
	known    map[string]bool   // extended resources that are classes
}

func (e claimEvaluator) Limits(name corev1.ResourceName) bool {
	if isCount(name, claims) || strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass) {
		return true
	}
	if class, ok := strings.CutPrefix(string(name), corev1.ResourceImplicitExtendedClaimsPerClass); ok && e.extended[class] != "" {
		return true
	}
	return isExtendedRequest(name) && e.known[strings.TrimPrefix(string(name), requests)]
}

// Updates is about every update, for which devices are asked may change.
func (claimEvaluator) Updates(subresource string, _, _ object.Tree) bool { return subresource == "" }

func (e claimEvaluator) Read(ctx context.Context, decode func(any) error) (Object, error) {
	c := &claim{of: e}
	if err := decode(&c.ResourceClaim); err != nil {
		return nil, err
	}
	owner, err := e.pod(ctx, &c.ResourceClaim)
	if owner != nil {
		c.counted = (&pod{Pod: *owner, now: e.Now}).Usage()
	}
	return c, err
}

// A claim is measured.
type claim struct {
	resourcev1.ResourceClaim
	of      claimEvaluator
	counted corev1.ResourceList // of the pod for which the claim was made
}

func (c *claim) Usage() corev1.ResourceList {
	list := corev1.ResourceList{CountName(claims): one}
	for _, r := range c.Spec.Devices.Requests {
		most := map[string]int64{} // of those of which one is given
		for _, s := range r.FirstAvailable {
			most[s.DeviceClassName] = max(most[s.DeviceClassName], devices(s.AllocationMode, s.Count))
		}
		if len(r.FirstAvailable) == 0 && r.Exactly != nil {
			Add(list, ofDevices(r.Exactly.DeviceClassName, devices(r.Exactly.AllocationMode, r.Exactly.Count)))
		}
		for class, n := range most {
			if n > 0 {
				Add(list, ofDevices(class, n))
			}
		}
	}
	c.addExtended(list)
	return list
}

func ofDevices(class string, n int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceName(class + corev1.ResourceClaimsPerClass): *resource.NewQuantity(n, resource.DecimalSI)}
}

// devices returns how many devices are given at most.
func devices(mode resourcev1.DeviceAllocationMode, n int64) int64 {
	switch mode {
	case resourcev1.DeviceAllocationModeExactCount:
		return n
	case resourcev1.DeviceAllocationModeAll:
		return resourcev1.AllocationResultsMaxSize
	}
	return 0
}

// addExtended adds the devices by the names that they have as extended resources, without those that
// are counted for the pod already.
func (c *claim) addExtended(list corev1.ResourceList) {
	more := corev1.ResourceList{}
	for name, n := range list {
		class, ok := strings.CutSuffix(string(name), corev1.ResourceClaimsPerClass)
		if !ok || class == "" {
			continue
		}
		more[corev1.ResourceName(corev1.ResourceImplicitExtendedClaimsPerClass+class)] = n
		if extended := c.of.extended[class]; extended != "" {
			more[corev1.ResourceName(requests+extended)] = n
		}
	}
	for name, n := range more {
		n = n.DeepCopy()
		n.Sub(c.counted[name])
		if n.Sign() > 0 {
			list[name] = n
		}
	}
}

// pod returns the pod for whose extended resources a claim was made, or nil. A pod has one such claim:
// the one that it names or, while it names none, the oldest.
func (e *Evaluators) pod(ctx context.Context, c *resourcev1.ResourceClaim) (*corev1.Pod, error) {
	owner := metav1.GetControllerOfNoCopy(c)
	if c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" || owner == nil || owner.Kind != "Pod" || owner.APIVersion != "v1" {
		return nil, nil
	}
	p, err := e.pods.Get(ctx, c.Namespace, owner.Name)
	if err != nil || p == nil || p.UID != owner.UID {
		return nil, err
	}
	if s := p.Status.ExtendedResourceClaimStatus; s != nil {
		if s.ResourceClaimName != c.Name {
			return nil, nil
		}
		return p, nil
	}
	others, err := e.claims.List(ctx, c.Namespace)
	for _, o := range others {
		its := metav1.GetControllerOfNoCopy(o)
		if o.Annotations[resourcev1.ExtendedResourceClaimAnnotation] != "true" || its == nil || its.UID != owner.UID || its.Kind != "Pod" || its.APIVersion != "v1" {
			continue
		}
		if earlier := o.CreationTimestamp.Compare(c.CreationTimestamp.Time); earlier < 0 || earlier == 0 && o.Name < c.Name {
			return nil, err
		}
	}
	return p, err
}

func (*claim) InScope(corev1.ScopedResourceSelectorRequirement) (bool, error) { return false, nil }
func (*claim) Lacks([]corev1.ResourceName) error                              { return nil }
