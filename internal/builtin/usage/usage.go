// Package usage measures the usage of objects for ResourceQuotas as Kubernetes does. Every object
// counts for its resource, and Pods, Services, PersistentVolumeClaims and ResourceClaims use
// further resources.
//
// The package knows objects and the names of resources in quotas. It knows neither limits nor
// totals.
package usage

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// An Evaluator measures the objects of one resource.
type Evaluator interface {
	// Limits reports whether the objects use the resource with that name in quotas.
	Limits(name corev1.ResourceName) bool
	// Updates reports whether an update through a subresource, or "", may increase the usage.
	Updates(subresource string, now, was object.Tree) bool
	// Read returns an Object. decode decodes it into a Go value.
	Read(ctx context.Context, decode func(into any) error) (Object, error)
}

// An Object is a measured object.
type Object interface {
	// Usage returns the usage by resource.
	Usage() corev1.ResourceList
	// InScope reports whether the object is in the scope of a quota.
	InScope(corev1.ScopedResourceSelectorRequirement) (bool, error)
	// Lacks returns an error if the object must set a limited resource and does not.
	Lacks(limited []corev1.ResourceName) error
}

// Evaluators are the Evaluators of all resources.
type Evaluators struct {
	Now   func() time.Time // time.Now if nil
	Gates *gate.Set

	classes *stored.Lister[resourcev1.DeviceClass]
	claims  *stored.Lister[resourcev1.ResourceClaim]
	pods    *stored.Lister[corev1.Pod]
}

// New returns the Evaluators of a server. The usage of an object may depend on others in the cache.
func New(cache *watchcache.Cache, core *resource.Set) *Evaluators {
	return &Evaluators{
		Now:     time.Now,
		classes: stored.List[resourcev1.DeviceClass](cache, core, resourcev1.Resource("deviceclasses")),
		claims:  stored.List[resourcev1.ResourceClaim](cache, core, claims),
		pods:    stored.List[corev1.Pod](cache, core, pods),
	}
}

// The resources with more usage than their count.
var (
	pods     = corev1.Resource("pods")
	services = corev1.Resource("services")
	volumes  = corev1.Resource("persistentvolumeclaims")
	claims   = resourcev1.Resource("resourceclaims")
)

// aliases are other names for the object counts of some resources.
var aliases = map[corev1.ResourceName]schema.GroupResource{
	corev1.ResourceConfigMaps:             corev1.Resource("configmaps"),
	corev1.ResourceQuotas:                 corev1.Resource("resourcequotas"),
	corev1.ResourceReplicationControllers: corev1.Resource("replicationcontrollers"),
	corev1.ResourceSecrets:                corev1.Resource("secrets"),
}

// Of returns the Evaluator of a resource, or nil if quotas cannot limit it.
func (e *Evaluators) Of(ctx context.Context, r schema.GroupResource) (Evaluator, error) {
	switch r {
	case pods:
		return podEvaluator{e.Now, e.Gates}, nil
	case services:
		return serviceEvaluator{}, nil
	case volumes:
		return volumeEvaluator{}, nil
	case claims:
		return e.claimEvaluator(ctx)
	}
	if Uncounted(r) {
		return nil, nil
	}
	return count(r), nil
}

// Uncounted reports whether quotas cannot limit the objects of a resource.
func Uncounted(r schema.GroupResource) bool {
	return r.Resource == "events" && (r.Group == "" || r.Group == "events.k8s.io")
}

// CountName returns the name in quotas for the number of objects of a resource.
func CountName(r schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName(countPrefix + r.String())
}

const countPrefix = "count/"

// isCount reports whether name is the CountName of r.
func isCount(name corev1.ResourceName, r schema.GroupResource) bool {
	rest, ok := strings.CutPrefix(string(name), countPrefix)
	if !ok {
		return false
	}
	rest, ok = strings.CutPrefix(rest, r.Resource)
	return ok && (r.Group == "" && rest == "" || r.Group != "" && rest != "" && rest[0] == '.' && rest[1:] == r.Group)
}

// Resources returns the resources whose objects may use the resource with that name in quotas.
func (e *Evaluators) Resources(ctx context.Context, name corev1.ResourceName) (all []schema.GroupResource, err error) {
	if rest, ok := strings.CutPrefix(string(name), countPrefix); ok {
		return []schema.GroupResource{schema.ParseGroupResource(rest)}, nil
	}
	if r, ok := aliases[name]; ok {
		return []schema.GroupResource{r}, nil
	}
	for _, r := range []schema.GroupResource{pods, services, volumes, claims} {
		of, err := e.Of(ctx, r)
		if err != nil {
			return nil, err
		}
		if of.Limits(name) {
			all = append(all, r)
		}
	}
	return all, nil
}

// A count is the Evaluator of a resource whose objects are only counted. It is also their Object:
// all of them have the same usage.
type count schema.GroupResource

func (c count) Limits(name corev1.ResourceName) bool {
	return isCount(name, schema.GroupResource(c)) || aliases[name] == schema.GroupResource(c)
}

func (c count) Updates(string, object.Tree, object.Tree) bool { return false }

func (c count) Read(context.Context, func(any) error) (Object, error) { return c, nil }

func (c count) Usage() corev1.ResourceList {
	list := corev1.ResourceList{CountName(schema.GroupResource(c)): one}
	for alias, r := range aliases {
		if r == schema.GroupResource(c) {
			list[alias] = one
		}
	}
	return list
}

// Alike returns the usage of each object of an Evaluator, if all have the same usage and no scopes.
func Alike(e Evaluator) (each corev1.ResourceList, ok bool) {
	c, ok := e.(count)
	if !ok {
		return nil, false
	}
	return c.Usage(), true
}

func (c count) InScope(corev1.ScopedResourceSelectorRequirement) (bool, error) { return false, nil }
func (c count) Lacks([]corev1.ResourceName) error                              { return nil }
