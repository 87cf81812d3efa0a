package registry

import (
	"bytes"
	"context"
	"errors"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// objects gives kinds access to stored objects, for their own handlers and for hooks. Its Registry has
// no admission.
type objects struct{ *Registry }

func (o objects) Get(ctx context.Context, d *resource.Definition, namespace, name string) (object.Tree, error) {
	target := StorageTarget(d, namespace, name)
	current, err := o.current(ctx, &target)
	switch {
	case err != nil:
		return nil, err
	case current == nil:
		return nil, target.notFound()
	}
	return o.Decode(ctx, d, target.Version, current)
}

func (o objects) List(ctx context.Context, d *resource.Definition, namespace string) ([]object.Tree, error) {
	if _, err := o.cache.Fresh(ctx); err != nil {
		return nil, StorageError(err)
	}
	snapshot, err := o.cache.Resource(d.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, StorageError(err)
	}
	var all []object.Tree
	for item := range snapshot.Scan(d.NamespacePrefix(namespace), "") {
		if t, err := o.Decode(ctx, d, d.StorageVersion(), item); err == nil {
			all = append(all, t)
		}
	}
	return all, nil
}

// Replace commits changes of several objects in one transaction. Unchanged objects are guards: the
// commit fails if one of them has changed.
func (o objects) Replace(ctx context.Context, changed ...resource.Object) (string, error) {
	var (
		w     kv.Write
		first string
	)
	for i, c := range changed {
		current, err := o.unchanged(ctx, c)
		if err != nil {
			return "", err
		}
		was, err := o.read(ctx, current)
		if err != nil {
			return "", err
		}
		data, _, _, err := stored(ctx, c.Definition, c.Definition.StorageVersion(), c.Tree)
		if err != nil {
			return "", err
		}
		if i == 0 {
			first = current.Key
		}
		switch {
		case bytes.Equal(data, was.JSON):
			w.Guards = append(w.Guards, kv.Guard{Key: current.Key, Revision: current.Revision})
		case w.Key == "":
			w.Key, w.Value, w.Expect, w.Was = current.Key, data, current.Revision, was.JSON
		default:
			w.With = append(w.With, kv.Change{Key: current.Key, Value: data, Expect: current.Revision})
		}
	}
	if w.Key == "" {
		return object.ResourceVersion(changed[0].Tree), nil
	}
	w.Note = o.Note(ctx, "update", "", "")
	revision, err := o.backend.Commit(ctx, w)
	var conflict *kv.ConflictError
	switch {
	case errors.As(err, &conflict):
		return "", resource.ErrOvertaken
	case err != nil:
		return "", StorageError(err)
	case w.Key != first:
		return object.ResourceVersion(changed[0].Tree), nil
	}
	return strconv.FormatInt(revision, 10), nil
}

// unchanged returns the stored object if it is still the one that c is based on.
func (o objects) unchanged(ctx context.Context, c resource.Object) (*watchcache.Object, error) {
	target := StorageTarget(c.Definition, object.Namespace(c.Tree), object.Name(c.Tree))
	current, err := o.current(ctx, &target)
	switch {
	case err != nil:
		return nil, err
	case current == nil || strconv.FormatInt(current.Revision, 10) != object.ResourceVersion(c.Tree):
		return nil, resource.ErrOvertaken
	}
	return current, nil
}

func (o objects) Delete(ctx context.Context, d *resource.Definition, namespace, name string, options *metav1.DeleteOptions) error {
	_, err := o.Registry.Delete(ctx, StorageTarget(d, namespace, name), options, WriteOptions{DryRun: len(options.DryRun) > 0, AsStored: true})
	return err
}
