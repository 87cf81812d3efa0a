package crd

import (
	"context"
	"maps"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/store/kv"
)

// markPrefix is the prefix of the keys of marks.
const markPrefix = resource.OwnPrefix + "names/"

// resolveNames decides the status of obj by the names of the other CustomResourceDefinitions of its group,
// unless obj is being deleted. The turn of Begin holds within this process. With other servers on the
// same store, all writes that take or free names of a group serialize on its mark: each such write
// moves it, and a decision about names is committed only if the mark has not moved.
func (r *Registrar) resolveNames(ctx context.Context, obj, old map[string]any) ([]resource.Mark, error) {
	crd, err := typedWithoutSchemas(obj)
	if err != nil {
		return nil, nil // the definition is invalid or undecodable
	}
	goes := crd.DeletionTimestamp != nil && len(crd.Finalizers) == 0
	if crd.DeletionTimestamp != nil && !goes {
		return nil, nil
	}
	if crd.Spec.PreserveUnknownFields {
		if crd, err = typed(obj); err != nil {
			return nil, nil
		}
	}
	had, has := acceptedNames(old), &crd.Status.AcceptedNames
	if goes {
		has = &names{}
	}
	var mark *resource.Mark
	var others claims
	if goes || undecided(crd) || !sameNames(had, has) {
		if mark, others, err = r.namesOf(ctx, crd.Spec.Group, crd.Name); err != nil {
			return nil, err
		}
	}
	if !goes {
		decideStatus(crd, others, r.o.Now())
		r.recordStatus(ctx, obj, &crd.Status)
	}
	if mark == nil {
		return nil, nil
	}
	if !sameNames(had, has) {
		mark.Moves, mark.Value = true, []byte(crd.Name)
		if goes && others.none() && mark.Revision != kv.Absent {
			mark.Value = nil // the last definition of a group removes its mark
		}
	}
	return []resource.Mark{*mark}, nil
}

// recordStatus sets the status of obj, with the server as its manager.
func (r *Registrar) recordStatus(ctx context.Context, obj object.Tree, status *v1.CustomResourceDefinitionStatus) {
	before := maps.Clone(obj)
	before["metadata"] = maps.Clone(object.Metadata(obj))
	setStatus(obj, status)
	apply.FieldsOf(r.self, r.self.StorageVersion(), "status").Update(ctx, before, obj, apply.Server)
}

// namesOf returns the accepted names of the other definitions of a group, and the mark of the group at
// that time or earlier.
func (r *Registrar) namesOf(ctx context.Context, group, name string) (*resource.Mark, claims, error) {
	snapshot, err := r.o.Cache.Resource(markPrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, claims{}, err
	}
	mark := &resource.Mark{Key: markPrefix + group}
	if o := snapshot.Get(mark.Key); o != nil {
		mark.Revision = o.Revision
	}
	if err := r.Committed(ctx, snapshot.Revision()); err != nil {
		return nil, claims{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var others claims
	for e := range r.known.of(group) {
		if e.name != name {
			others.add(&e.accepted)
		}
	}
	return mark, others, nil
}

// acceptedNames returns the accepted names of t, which may be nil.
func acceptedNames(t object.Tree) *names {
	if tree, ok := t["status"].(object.Tree); ok {
		if crd, err := typed(object.Tree{"status": tree}); err == nil {
			return &crd.Status.AcceptedNames
		}
	}
	return &v1.CustomResourceDefinitionNames{}
}
