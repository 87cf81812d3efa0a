package crd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
)

const (
	// deleters is how many objects of a kind are deleted at a time.
	deleters = 16
	// patience is how long the objects of a deleted kind may take to go before
	// the status says that they do not.
	patience = time.Minute
)

// followUp starts what a change makes necessary.
func (r *Registrar) followUp(ctx context.Context, c change) {
	if c.freed() {
		group := c.old.group
		r.tasks.start(ctx, "names of "+group, func(ctx context.Context) error { return r.settleNames(ctx, group) })
	}
	switch e := c.now; {
	case e == nil || e.group == "":
	case e.finalizing:
		r.tasks.start(ctx, "finalize "+e.name, func(ctx context.Context) error { return r.finalize(ctx, e.name) })
	case !e.settled && !e.deleting:
		r.settleLater(ctx, e.name)
	}
}

// settleNames gives those of a group that were refused a name what is free now:
// one after the other, and first to whoever has been waiting longest.
func (r *Registrar) settleNames(ctx context.Context, group string) error {
	for _, name := range r.waitingForNames(group) {
		if err := r.settleAgain(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// waitingForNames returns who of a group was refused a name, in the order of
// their last writes.
func (r *Registrar) waitingForNames(group string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var waiting []*entry
	for _, e := range r.known.groups[group] {
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

// settleLater settles a CustomResourceDefinition in the background.
func (r *Registrar) settleLater(ctx context.Context, name string) {
	r.tasks.start(ctx, "settle "+name, func(ctx context.Context) error { return r.settleAgain(ctx, name) })
}

// settleAgain writes a CustomResourceDefinition as it is, so that the write
// settles it.
func (r *Registrar) settleAgain(ctx context.Context, name string) error {
	return r.edit(ctx, name, "", func(object.Tree) {})
}

// edit changes the CustomResourceDefinition of a name and, if it is not "", uid.
// There is nothing to do for one that is gone.
func (r *Registrar) edit(ctx context.Context, name string, uid string, edit func(object.Tree)) error {
	target := registry.StorageTarget(r.self, "", name)
	target.Subresource = "status"
	_, err := r.o.Objects.Modify(ctx, target, func(old object.Tree) (object.Tree, error) {
		if uid != "" && object.UID(old) != uid {
			return nil, status.NotFound(r.self.GroupResource(), name)
		}
		t := object.CloneTree(old)
		edit(t)
		return t, nil
	}, registry.WriteOptions{})
	if status.Is(err, metav1.StatusReasonNotFound) {
		return nil
	}
	return err
}

// terminating says how far the removal of the objects of a kind is.
func (r *Registrar) terminating(reason, message string) func(object.Tree) {
	return r.terminates(v1.ConditionTrue, reason, message)
}

// terminated says that nothing is to be removed any more and takes the finalizer
// off. The condition stays true while other finalizers hold the definition, for
// so long no objects are created.
func (r *Registrar) terminated(reason, message string) func(object.Tree) {
	return func(t object.Tree) {
		rest := slices.DeleteFunc(object.Finalizers(t), func(f string) bool { return f == v1.CustomResourceCleanupFinalizer })
		object.SetFinalizers(t, rest)
		s := v1.ConditionFalse
		if len(rest) > 0 {
			s = v1.ConditionTrue
		}
		r.terminates(s, reason, message)(t)
	}
}

func (r *Registrar) terminates(s v1.ConditionStatus, reason, message string) func(object.Tree) {
	return func(t object.Tree) {
		editStatus(t, func(status *v1.CustomResourceDefinitionStatus) {
			setCondition(status, condition{Type: v1.Terminating, Status: s, Reason: reason, Message: message}, r.o.Now())
		})
	}
}

// finalize removes the objects of a deleted CustomResourceDefinition and then
// lets it go. The status says how far it is.
func (r *Registrar) finalize(ctx context.Context, name string) error {
	r.mu.Lock()
	e := r.known.get(name)
	r.mu.Unlock()
	if e == nil || !e.finalizing {
		return nil
	}
	uid := string(e.uid)
	err := r.edit(ctx, name, uid, r.terminating("InstanceDeletionInProgress", "CustomResource deletion is in progress"))
	if err != nil {
		return err
	}
	outcome := r.terminated("InstanceDeletionCompleted", "removed all instances")
	switch {
	case r.overlaps(e):
		outcome = r.terminated("OverlappingBuiltInResource", "instances overlap with built-in resources in storage")
	case !e.established:
		outcome = r.terminated("NeverEstablished", "resource was never established")
	default:
		if err := r.removeObjects(ctx, e); err != nil {
			return err
		}
	}
	return r.edit(ctx, name, uid, outcome)
}

// overlaps reports whether the objects of a definition are stored where those of
// a kind that is built in are.
func (r *Registrar) overlaps(e *entry) bool {
	if e.definition == nil {
		return false
	}
	for _, d := range append([]*resource.Definition{r.self}, r.o.BuiltIn...) {
		if d.StoragePrefix == e.definition.StoragePrefix {
			return true
		}
	}
	return false
}

// removeObjects deletes all objects of a kind and waits until they are gone. No
// new ones can be made: since the revision that marked the definition as being
// deleted, which has been read, every write is guarded by a later one.
func (r *Registrar) removeObjects(ctx context.Context, e *entry) error {
	failed := func(reason, doing string, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		say := r.terminating(reason, fmt.Sprintf("%s: %v", doing, err))
		return errors.Join(err, r.edit(ctx, e.name, string(e.uid), say))
	}
	if e.definition == nil {
		return failed("InstanceDeletionFailed", "could not list instances", errors.New("the stored definition cannot be compiled"))
	}
	if err := r.deleteObjects(ctx, e); err != nil {
		return failed("InstanceDeletionFailed", "could not issue all deletes", err)
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := r.waitForNone(bounded, e.definition.StoragePrefix); err != nil {
		return failed("InstanceDeletionCheck", "could not confirm zero CustomResources remaining", err)
	}
	return nil
}

// deleteObjects asks for the deletion of every object of a kind, some at a time.
func (r *Registrar) deleteObjects(ctx context.Context, e *entry) error {
	if _, err := r.o.Cache.Fresh(ctx); err != nil {
		return err
	}
	snapshot, err := r.o.Cache.Resource(e.definition.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return err
	}
	keys := make(chan string)
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		errs    []error
	)
	for range min(deleters, snapshot.Len("", "")) {
		workers.Go(func() {
			for key := range keys {
				if err := r.deleteObject(ctx, e, key); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for o := range snapshot.Scan("", "") {
		if !o.Deleting {
			keys <- o.Key
		}
	}
	close(keys)
	workers.Wait()
	return join(errs)
}

// join makes one error of several, and says each only once.
func join(errs []error) error {
	var messages []string
	for _, err := range errs {
		if !slices.Contains(messages, err.Error()) {
			messages = append(messages, err.Error())
		}
	}
	if len(messages) == 0 {
		return nil
	}
	return errors.New(aggregate(messages))
}

func (r *Registrar) deleteObject(ctx context.Context, e *entry, key string) error {
	for d := e.definition; d != nil; d = r.definitionOf(e) {
		namespace, name := d.Split(key)
		_, err := r.o.Objects.Delete(ctx, registry.StorageTarget(d, namespace, name), &metav1.DeleteOptions{}, registry.WriteOptions{AsStored: true})
		switch {
		case err == nil, status.Is(err, metav1.StatusReasonNotFound):
			return nil
		case !errors.Is(err, registry.ErrStale):
			return err
		}
		if err := r.Fresh(ctx); err != nil {
			return err
		}
	}
	return nil
}

// definitionOf returns the Definition in force of what an entry is of, or nil.
func (r *Registrar) definitionOf(e *entry) *resource.Definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.known.get(e.name); now != nil && now.uid == e.uid {
		return now.definition
	}
	return nil
}

// waitForNone returns when no object of a kind is left. Those that others have to
// finalize may take any time.
func (r *Registrar) waitForNone(ctx context.Context, prefix string) error {
	objects := r.o.Cache.Resource(prefix)
	snapshot, err := objects.Snapshot(ctx, kv.Latest)
	if err != nil {
		return err
	}
	left := snapshot.Len("", "")
	watcher, err := objects.Watch(ctx, "", snapshot.Revision())
	if err != nil {
		return err
	}
	defer watcher.Close()
	for left > 0 {
		batch, err := watcher.Next(ctx)
		if err != nil {
			return err
		}
		for _, e := range batch.Events {
			switch {
			case e.Object == nil:
				left--
			case e.Prev == nil:
				left++
			}
		}
	}
	return nil
}
