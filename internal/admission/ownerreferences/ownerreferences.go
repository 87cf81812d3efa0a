// Package ownerreferences implements the admission plugin OwnerReferencesPermissionEnforcement.
//
// An owner reference lets the garbage collector delete the object, and can block the deletion of
// the owner. So a user that sets one needs permission to delete the object, and to update the
// finalizers of the owner.
package ownerreferences

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

// PermissionEnforcement checks the permissions for changes of owner references.
type PermissionEnforcement struct {
	Authorizer authz.Authorizer
	// Kinds has the served kinds.
	Kinds *resource.Catalog
}

var pods = corev1.Resource("pods")

// Validate implements registry.Validator. The status of a pod cannot change owner references.
func (p *PermissionEnforcement) Validate(ctx context.Context, a *registry.Admission) error {
	if a.User == nil || a.Operation != registry.Create && a.Operation != registry.Update || a.Is(pods, "status", a.Operation) {
		return nil
	}
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	now, was := ownersOf(a.Object), ownersOf(old)
	if len(now) == 0 && len(was) == 0 || slices.EqualFunc(now, was, func(x, y metav1.OwnerReference) bool { return equality.Semantic.DeepEqual(x, y) }) {
		return nil
	}
	if a.Operation == registry.Update { // a create needs no permission to delete
		if err := p.mayDelete(ctx, a); err != nil {
			return err
		}
	}
	blocking := newlyBlocking(now, was)
	if len(blocking) == 0 {
		return nil
	}
	anything := request.Info{IsResource: true, Verb: "update", Group: "*", Version: "*", Resource: "*", Subresource: "finalizers", Name: "*"}
	if decision, _, _ := p.Authorizer.Authorize(ctx, &authz.Attributes{User: a.User, Info: anything}); decision == authz.Allow {
		return nil
	}
	for _, owner := range blocking {
		if err := p.mayFinalize(ctx, a, owner); err != nil {
			return err
		}
	}
	return nil
}

func (p *PermissionEnforcement) mayDelete(ctx context.Context, a *registry.Admission) error {
	of := a.Target.Definition
	decision, reason, err := p.Authorizer.Authorize(ctx, &authz.Attributes{User: a.User, Info: request.Info{
		IsResource: true, Verb: "delete", Group: of.Group, Version: a.Target.Version.Name,
		Resource: of.Plural, Subresource: a.Target.Subresource, Namespace: a.Target.Namespace, Name: a.Target.Name,
	}})
	if decision != authz.Allow {
		return a.Forbidden(fmt.Errorf("cannot set an ownerRef on a resource you can't delete: %v, %v", reason, err))
	}
	return nil
}

// mayFinalize checks that the user may update the finalizers of an owner: of each resource with the
// owner's kind.
func (p *PermissionEnforcement) mayFinalize(ctx context.Context, a *registry.Admission, owner metav1.OwnerReference) error {
	version, err := schema.ParseGroupVersion(owner.APIVersion)
	var kinds []*resource.Definition
	if err == nil {
		kinds, err = p.kindsOf(version.WithKind(owner.Kind))
	}
	if err != nil {
		return a.Forbidden(fmt.Errorf("cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion %s Kind %s: %v", owner.APIVersion, owner.Kind, err))
	}
	for _, d := range kinds {
		info := request.Info{
			IsResource: true, Verb: "update", Group: d.Group, Version: version.Version, Resource: d.Plural, Subresource: "finalizers", Name: owner.Name,
		}
		if d.Namespaced {
			info.Namespace = a.Target.Namespace
		}
		decision, reason, err := p.Authorizer.Authorize(ctx, &authz.Attributes{User: a.User, Info: info})
		if decision != authz.Allow {
			return a.Forbidden(fmt.Errorf("cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: %v, %v", reason, err))
		}
	}
	return nil
}

// kindsOf returns the Definitions of a kind.
func (p *PermissionEnforcement) kindsOf(k schema.GroupVersionKind) (of []*resource.Definition, err error) {
	if group := p.Kinds.Set().Group(k.Group); group != nil {
		for _, d := range group.Definitions {
			v := d.Version(k.Version)
			if v != nil && v.Served && (k.Kind == d.Kind || k.Kind == strings.ToLower(d.Kind)) {
				of = append(of, d)
			}
		}
	}
	if len(of) == 0 {
		return nil, &meta.NoKindMatchError{GroupKind: k.GroupKind(), SearchedVersions: []string{k.Version}}
	}
	return of, nil
}

// newlyBlocking returns the owner references that block owner deletion now and did not before.
func newlyBlocking(now, was []metav1.OwnerReference) (blocking []metav1.OwnerReference) {
	blocks := map[types.UID]bool{}
	for _, o := range was {
		blocks[o.UID] = isBlocking(o)
	}
	for _, o := range now {
		if isBlocking(o) && !blocks[o.UID] {
			blocking = append(blocking, o)
		}
	}
	return blocking
}

func isBlocking(o metav1.OwnerReference) bool {
	return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
}

func ownersOf(t object.Tree) []metav1.OwnerReference {
	if metadata, _ := t["metadata"].(object.Tree); metadata["ownerReferences"] == nil {
		return nil
	}
	return object.AccessorOf(t).GetOwnerReferences()
}
