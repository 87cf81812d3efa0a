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

// claimEvaluator returns the Evaluator of ResourceClaims. The present device classes add names of
// extended resources.
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
	extended map[string]string // the extended resource of a class
	known    map[string]bool   // extended resources of classes
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

// Updates is true for every update of the spec: it may change the requested devices.
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

// A claim is a measured ResourceClaim.
type claim struct {
	resourcev1.ResourceClaim
	of      claimEvaluator
	counted corev1.ResourceList // of the pod for which the claim was created
}

func (c *claim) Usage() corev1.ResourceList {
	list := corev1.ResourceList{CountName(claims): one}
	for _, r := range c.Spec.Devices.Requests {
		most := map[string]int64{} // of subrequests, one of which is allocated
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

// devices returns the maximum number of devices of a request.
func devices(mode resourcev1.DeviceAllocationMode, n int64) int64 {
	switch mode {
	case resourcev1.DeviceAllocationModeExactCount:
		return n
	case resourcev1.DeviceAllocationModeAll:
		return resourcev1.AllocationResultsMaxSize
	}
	return 0
}

// addExtended adds devices by their names as extended resources, without those already counted for
// the pod.
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

// pod returns the pod for whose extended resources a claim was created, or nil. A pod has one such
// claim: the one in its status, otherwise the oldest.
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
