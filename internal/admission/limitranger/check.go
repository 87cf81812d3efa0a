package limitranger

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/internal/builtin/pod"
	"github.com/anykind/anykind/internal/object/gate"
)

// check returns the violations of one item of a LimitRange.
func check(item *corev1.LimitRangeItem, requests, limits corev1.ResourceList) (errs []error) {
	add := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		add(amount{item.Type, name, requests, limits}.least(item.Min[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		add(amount{item.Type, name, requests, limits}.most(item.Max[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		add(amount{item.Type, name, requests, limits}.ratio(item.MaxLimitRequestRatio[name]))
	}
	return errs
}

// checkRequests is check for resources without limits: only requests count.
func checkRequests(item *corev1.LimitRangeItem, requests corev1.ResourceList) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		if err := (amount{item.Type, name, requests, nil}).least(item.Min[name]); err != nil {
			errs = append(errs, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		if err := (amount{item.Type, name, requests, nil}).mostRequested(item.Max[name]); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// An amount is the request and the limit for one resource.
type amount struct {
	of               corev1.LimitType
	name             corev1.ResourceName
	requests, limits corev1.ResourceList
}

// values returns the request, the limit and the value to compare with, in milli-units if all of
// them fit.
func (x amount) values(with resource.Quantity) (request, limit, other int64) {
	r, l := x.requests[x.name], x.limits[x.name]
	request, limit, other = r.Value(), l.Value(), with.Value()
	if max(request, limit, other) <= resource.MaxMilliValue {
		return r.MilliValue(), l.MilliValue(), with.MilliValue()
	}
	return request, limit, other
}

func text(q resource.Quantity) string { return q.String() }

func (x amount) least(min resource.Quantity) error {
	request, limit, least := x.values(min)
	_, requested := x.requests[x.name]
	_, limited := x.limits[x.name]
	start := fmt.Sprintf("minimum %s usage per %s is %s", x.name, x.of, text(min))
	switch {
	case !requested:
		return fmt.Errorf("%s.  No request is specified", start)
	case request < least:
		return fmt.Errorf("%s, but request is %s", start, text(x.requests[x.name]))
	case limited && limit < least:
		return fmt.Errorf("%s, but limit is %s", start, text(x.limits[x.name]))
	}
	return nil
}

func (x amount) most(max resource.Quantity) error {
	request, limit, most := x.values(max)
	_, requested := x.requests[x.name]
	_, limited := x.limits[x.name]
	start := fmt.Sprintf("maximum %s usage per %s is %s", x.name, x.of, text(max))
	switch {
	case !limited:
		return fmt.Errorf("%s.  No limit is specified", start)
	case limit > most:
		return fmt.Errorf("%s, but limit is %s", start, text(x.limits[x.name]))
	case requested && request > most:
		return fmt.Errorf("%s, but request is %s", start, text(x.requests[x.name]))
	}
	return nil
}

func (x amount) mostRequested(max resource.Quantity) error {
	request, _, most := x.values(max)
	_, requested := x.requests[x.name]
	start := fmt.Sprintf("maximum %s usage per %s is %s", x.name, x.of, text(max))
	switch {
	case !requested:
		return fmt.Errorf("%s.  No request is specified", start)
	case request > most:
		return fmt.Errorf("%s, but request is %s", start, text(x.requests[x.name]))
	}
	return nil
}

func (x amount) ratio(max resource.Quantity) error {
	request, limit, _ := x.values(max)
	_, requested := x.requests[x.name]
	_, limited := x.limits[x.name]
	start := fmt.Sprintf("%s max limit to request ratio per %s is %s", x.name, x.of, text(max))
	switch {
	case !requested || request == 0:
		return fmt.Errorf("%s, but no request is specified or request is 0", start)
	case !limited || limit == 0:
		return fmt.Errorf("%s, but no limit is specified or limit is 0", start)
	}
	is := float64(limit) / float64(request)
	compared, most := is, float64(max.Value())
	if max.Value() <= resource.MaxMilliValue {
		compared, most = is*1000, float64(max.MilliValue())
	}
	if compared > most {
		return fmt.Errorf("%s, but provided ratio is %f", start, is)
	}
	return nil
}

// ofPod returns the requests and limits of a whole pod: its own resources where set, otherwise the
// sum of its containers.
func ofPod(gates *gate.Set, spec *corev1.PodSpec) (requests, limits corev1.ResourceList) {
	requests, limits = pod.Requests(spec), pod.Limits(spec)
	if spec.Resources == nil || !gates.On(gate.PodLevelResources) {
		return requests, limits
	}
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if q, ok := spec.Resources.Requests[name]; ok {
			requests[name] = q
		}
		if q, ok := spec.Resources.Limits[name]; ok {
			limits[name] = q
		}
	}
	return requests, limits
}
