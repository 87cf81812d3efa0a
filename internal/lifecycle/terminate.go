package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// A namespace is one that is stored.
type namespace struct {
	*header
	definition *resource.Definition
	finalizers []corev1.FinalizerName // of the spec
	phase      corev1.NamespacePhase
}

// namespace returns the namespace of a name as it is stored now, or nil.
func (l *Lifecycle) namespace(ctx context.Context, name string) (*namespace, error) {
	d := l.Catalog.Set().Lookup("", "namespaces")
	h, err := l.read(ctx, d.Key("", name))
	if err != nil || h == nil {
		return nil, err
	}
	var said struct {
		Spec   corev1.NamespaceSpec
		Status corev1.NamespaceStatus
	}
	err = json.Unmarshal(h.JSON, &said)
	return &namespace{header: h, definition: d, finalizers: said.Spec.Finalizers, phase: said.Status.Phase}, err
}

// terminate deletes what is in a namespace that is being deleted and, once
// nothing is left, lets the namespace go.
func (l *Lifecycle) terminate(ctx context.Context, name string) error {
	n, err := l.namespace(ctx, name)
	if err != nil {
		return err
	}
	if n == nil || !n.Deleting || len(n.finalizers) == 0 {
		l.leaving.forget(name)
		return nil
	}
	found := l.empty(ctx, name)
	if ctx.Err() != nil {
		l.leaving.end(name, nil)
		return ctx.Err()
	}
	left := l.leaving.end(name, found)
	if err := l.showContent(ctx, n, found); err != nil {
		l.Logger.Warn("the status of a namespace could not be written", "namespace", name, "error", err)
	}
	switch err := errors.Join(append(found.errs, found.unrefreshed)...); {
	case err != nil:
		return err
	case left:
		return nil // what becomes of it will be seen
	case len(found.keys) > 0:
		// It has gone meanwhile, and the status is to say so.
		l.queue.add(task{do: terminate, key: name})
		return nil
	}
	return l.finalize(ctx, n)
}

// finalize takes our finalizer from a namespace.
func (l *Lifecycle) finalize(ctx context.Context, n *namespace) error {
	return l.change(ctx, n.definition, n.key, n.UID, "finalize", func(t object.Tree) bool {
		spec, _ := t["spec"].(object.Tree)
		finalizers, _ := spec["finalizers"].([]any)
		left := slices.DeleteFunc(slices.Clone(finalizers), func(f any) bool { return f == string(corev1.FinalizerKubernetes) })
		if len(left) == len(finalizers) {
			return false
		}
		spec["finalizers"] = left
		if len(left) == 0 {
			delete(spec, "finalizers")
		}
		return true
	})
}

// contents is what a namespace was found to have after all was asked to go.
type contents struct {
	unrefreshed error                         // why perhaps not all kinds were looked at
	errs        []error                       // one for each kind that could not be deleted
	kinds       map[schema.GroupResource]bool // that may have objects left
	keys        map[string]int64              // of the objects left, and the revision they were seen at
	counts      map[schema.GroupResource]int  // of the objects left
	finalizers  map[string]int                // of the objects left
}

// empty asks all objects in a namespace to go, and returns what is left. A kind
// that cannot be deleted does not keep the others from being deleted.
func (l *Lifecycle) empty(ctx context.Context, name string) *contents {
	found := &contents{
		kinds: map[schema.GroupResource]bool{}, keys: map[string]int64{},
		counts: map[schema.GroupResource]int{}, finalizers: map[string]int{},
	}
	kinds := l.leaving.begin(name)
	// Objects may have been created until the namespace was marked, which has
	// been read: what is served after that is all there can be.
	found.unrefreshed = l.Refresh(ctx)
	set := l.Catalog.Set()
	if kinds == nil {
		for d := range set.All() {
			kinds = append(kinds, d.GroupResource())
		}
	}
	for _, kind := range kinds {
		d := set.Lookup(kind.Group, kind.Resource)
		if d == nil || !d.Namespaced || ctx.Err() != nil {
			continue
		}
		if err := l.emptyKind(ctx, d, name, found); err != nil {
			found.errs = append(found.errs, err)
			found.kinds[kind] = true
		}
	}
	if found.unrefreshed != nil {
		found.kinds = nil
	}
	return found
}

func (l *Lifecycle) emptyKind(ctx context.Context, d *resource.Definition, name string, found *contents) error {
	prefix := d.NamespacePrefix(name)
	page, err := l.Backend.List(ctx, kv.Range{Prefix: prefix, Limit: 1})
	if err != nil || len(page.Records) == 0 {
		return err
	}
	var failed error
	err = l.pages(ctx, prefix, func(page kv.Page) {
		err := each(ctx, parallel, page.Records, func(r kv.Record) error { return l.askToGo(ctx, d.Group, &r) })
		if err != nil {
			failed = err
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return l.countLeft(ctx, d, name, found)
}

// askToGo deletes an object as one whose dependents need not be thought of: they
// are asked to go as well, or will be collected.
func (l *Lifecycle) askToGo(ctx context.Context, group string, r *kv.Record) error {
	h, err := readHeader(r.Key, r.Value, r.Revision)
	if err == nil && h.Deleting && !h.has(metav1.FinalizerOrphanDependents) && !h.has(metav1.FinalizerDeleteDependents) {
		return nil
	}
	background := metav1.DeletePropagationBackground
	err = l.with(ctx, group, r.Key, func(d *resource.Definition) error {
		return l.delete(ctx, d, r.Key, &metav1.DeleteOptions{PropagationPolicy: &background})
	})
	if isUnknown(err) {
		return nil // The kind is gone, and nothing of it can be left.
	}
	return err
}

func (l *Lifecycle) countLeft(ctx context.Context, d *resource.Definition, name string, found *contents) error {
	kind := d.GroupResource()
	held := false
	err := l.pages(ctx, d.NamespacePrefix(name), func(page kv.Page) {
		for i := range page.Records {
			r := &page.Records[i]
			found.kinds[kind] = true
			found.keys[r.Key] = page.Revision
			found.counts[kind]++
			h, err := readHeader(r.Key, r.Value, r.Revision)
			if err != nil {
				continue
			}
			for _, f := range h.finalizers {
				found.finalizers[f]++
				held = true
			}
		}
	})
	if err != nil || held || found.counts[kind] == 0 {
		return err
	}
	return fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", name, kind.WithVersion(preferred(d)))
}

// preferred is the version that clients prefer.
func preferred(d *resource.Definition) string {
	for _, v := range d.Versions {
		if v.Served {
			return v.Name
		}
	}
	return d.StorageVersion().Name
}

// pages calls do for everything with a prefix, as it is when the call is made.
func (l *Lifecycle) pages(ctx context.Context, prefix string, do func(kv.Page)) error {
	within := kv.Range{Prefix: prefix, Limit: pageSize}
	for {
		page, err := l.Backend.List(ctx, within)
		if err != nil {
			return err
		}
		do(page)
		if !page.More {
			return nil
		}
		within.After = page.Records[len(page.Records)-1].Key
		within.Revision = page.Revision
	}
}
