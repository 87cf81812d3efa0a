package crd

import (
	"cmp"
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/registry/apply"
)

// followUp starts the consequences of a change.
func (r *Registrar) followUp(ctx context.Context, c change) {
	if c.freed() {
		group := c.old.group
		r.tasks.start(ctx, "names of "+group, func(ctx context.Context) error { return r.giveNames(ctx, group) })
	}
	if e := c.now; e != nil && e.group != "" && !e.decided && !e.deleting {
		name := e.name
		r.tasks.start(ctx, "status of "+name, func(ctx context.Context) error { return r.rewrite(ctx, name) })
	}
}

// giveNames gives free names of a group to definitions with rejected names, one after the other, those
// with the oldest last write first.
func (r *Registrar) giveNames(ctx context.Context, group string) error {
	// A definition whose names are rejected right now is waiting once its write has ended.
	end, err := r.begin(ctx)
	if err != nil {
		return err
	}
	end()
	for _, name := range r.waitingForNames(group) {
		if err := r.rewrite(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// waitingForNames returns the definitions of a group with rejected names, in the order of their last
// writes.
func (r *Registrar) waitingForNames(group string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var waiting []*entry
	for e := range r.known.of(group) {
		if !e.named && !e.deleting {
			waiting = append(waiting, e)
		}
	}
	slices.SortFunc(waiting, func(a, b *entry) int { return cmp.Compare(a.revision, b.revision) })
	out := make([]string, len(waiting))
	for i, e := range waiting {
		out[i] = e.name
	}
	return out
}

// rewrite writes a CustomResourceDefinition without changes, which decides its names and its status
// anew. A missing one needs no write.
func (r *Registrar) rewrite(ctx context.Context, name string) error {
	target := registry.StorageTarget(r.self, "", name)
	target.Subresource = "status"
	_, err := r.o.Objects.Modify(ctx, target, func(old object.Tree) (object.Tree, error) {
		return object.CloneTree(old), nil
	}, registry.WriteOptions{Manager: apply.Server})
	if status.Is(err, metav1.StatusReasonNotFound) {
		return nil
	}
	return err
}
