package registry

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// compute returns the object of a Reader that the target names.
func compute(ctx context.Context, target *Target, from resource.Reader) (*watchcache.Object, error) {
	if !slices.Contains(from.Names(), target.Name) {
		// Kubernetes names such a resource like one of its objects.
		return nil, status.NotFound(schema.GroupResource{Group: target.Definition.Group, Resource: target.Definition.Singular}, target.Name)
	}
	return computed(target.Definition, target.Name, from.Read(ctx, target.Name))
}

// computeAll returns the selected objects of a Reader. They are computed at the same time.
func (r *Registry) computeAll(ctx context.Context, target *Target, from resource.Reader, s *Selection) (*List, error) {
	names := from.Names()
	trees := make([]object.Tree, len(names))
	var wait sync.WaitGroup
	for i, name := range names {
		wait.Go(func() { trees[i] = from.Read(ctx, name) })
	}
	wait.Wait()
	l := &List{}
	for i, t := range trees {
		o, err := computed(target.Definition, names[i], t)
		if err != nil {
			return nil, err
		}
		selected, err := s.matches(o, func(f string) (string, error) { return r.valueOf(ctx, target, o, f) })
		if err != nil {
			return nil, err
		}
		if selected {
			l.Items.add(o)
		}
	}
	return l, nil
}

// computed is an object that was never stored, and so has no revision.
func computed(d *resource.Definition, name string, t object.Tree) (*watchcache.Object, error) {
	e, err := object.Scan(encode(t), 0)
	if err != nil {
		return nil, status.Internal(err)
	}
	return watchcache.Of(d.Key("", name), e), nil
}
