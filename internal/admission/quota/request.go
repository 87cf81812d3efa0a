package quota

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// A request is a write that may use resources.
type request struct {
	*registry.Admission
	tree, old object.Tree
	of        usage.Evaluator // nil if no evaluator counts the write

	now, was usage.Object // set by measure; was is nil for a new object
}

func (p *Plugin) request(ctx context.Context, a *registry.Admission) (r *request, err error) {
	d := a.Target.Definition
	r = &request{Admission: a, tree: a.Object}
	if a.Operation == registry.Update {
		if r.old, err = a.Old(ctx); err != nil {
			return nil, err
		}
	} else if a.Target.Subresource != "" {
		return r, nil
	}
	if r.of, err = p.Evaluators.Of(ctx, d.GroupResource()); err != nil {
		return nil, registry.StorageError(err)
	}
	if r.of != nil && a.Operation == registry.Update && !r.of.Updates(a.Target.Subresource, r.tree, r.old) {
		r.of = nil
	}
	return r, nil
}

// measure decodes the objects in the version of the evaluator.
func (r *request) measure(ctx context.Context) (err error) {
	if r.now != nil {
		return nil
	}
	if r.old != nil {
		if r.was, err = r.read(ctx, r.old); err != nil {
			return err
		}
	}
	r.now, err = r.read(ctx, r.tree)
	return err
}

func (r *request) read(ctx context.Context, t object.Tree) (usage.Object, error) {
	read, err := r.of.Read(ctx, func(into any) (err error) {
		d := r.Target.Definition
		if v := d.StorageVersion().Name; d.Convert != nil && object.APIVersion(t) != d.APIVersion(v) {
			converted, err := d.Convert(ctx, []map[string]any{object.CloneTree(t)}, v)
			if err != nil {
				return err
			}
			t = converted[0]
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(t, into)
	})
	if err != nil {
		return nil, status.Internal(err)
	}
	return read, nil
}

// begins reports whether a write of a quota can add a limit.
func (r *request) begins(quotas *resource.Definition) bool {
	return r.Target.Definition == quotas && (r.old == nil || !object.Equal(limits(r.tree), limits(r.old)))
}

// limits returns the part of a quota that decides which usage it limits, without the amounts.
func limits(quota object.Tree) object.Tree {
	names := object.Tree{}
	for _, of := range []string{"spec", "status"} {
		for name := range kind.Tree(quota, of, "hard") {
			names[name] = true
		}
	}
	spec := kind.Tree(quota, "spec")
	return object.Tree{"hard": names, "scopes": spec["scopes"], "scopeSelector": spec["scopeSelector"]}
}

// both has the names of the limits in the spec or the status of a quota.
func both(q *corev1.ResourceQuota) corev1.ResourceList {
	names := corev1.ResourceList{}
	for _, hard := range []corev1.ResourceList{q.Spec.Hard, q.Status.Hard} {
		for name, most := range hard {
			names[name] = most
		}
	}
	return names
}
