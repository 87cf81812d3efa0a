package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// asking and making are what happens to every write, in this order. A phase that fails ends the
// write, and nothing is stored. An update that was overtaken by another one begins again with the
// first phase. A new object whose name, or what it was allocated, is taken begins again with
// making: admission that may change it is asked once.
//
// Fields are accounted for before admission changes the object, as in Kubernetes: what
// a webhook sets is nobody's.
var asking = [...]func(*write, context.Context) error{
	(*write).decode,   // what is wanted, of the body of a request or of a patch of the old object
	(*write).complete, // an object of its schema: pruned, with defaults
	(*write).account,  // who manages which field
	(*write).address,  // is it the object that the request is about, in the state that the client saw?
	(*write).mutate,   // admission that changes the object, which is completed again
}

var making = [...]func(*write, context.Context) error{
	(*write).translate,    // the version in which the kind decides on it
	(*write).prepare,      // what the server says of it, and what it keeps of the old object
	(*write).validate,     // all that is wrong with it
	(*write).canonicalize, // the form in which it is stored
	(*write).admit,        // admission that refuses
}

// deletion are the phases of a write that marks an object as being deleted, or removes
// it.
var deletion = [...]func(*write, context.Context) error{(*write).mutate, (*write).admit}

// storing are the phases that end every write. They are gone through again where others
// have moved a mark by which the write was resolved.
var storing = [...]func(*write, context.Context) error{
	(*write).resolve, // what follows from other objects
	(*write).encode,  // the bytes to store, once
	(*write).commit,  // stored, and seen by everybody
}

// answering are the phases of a create that a Creater answers. Nothing is stored.
var answering = [...]func(*write, context.Context) error{
	(*write).decode,
	(*write).complete,
	(*write).account,
	(*write).address,
	(*write).mutate,
	(*write).validateSent, // what was sent is not an object that is stored
	(*write).admit,
	(*write).answer, // by the kind
}

// A write is one attempt to write one object, on its way through the phases.
type write struct {
	*Registry
	target  Target
	options WriteOptions
	change  Change

	current *watchcache.Object // what is stored; nil for a new object
	// old and object are what is stored and what is written, in the version of the
	// target. old is nil for a new object.
	old, object object.Tree
	// shownOld and shown are the same as the client sees them, who may see another kind
	// through a subresource.
	shownOld, shown object.Tree
	asked           *resource.Version // the version of the client, where it is not that of the target any more
	// read is the object with what nobody sees of it once it is stored; nil if there is
	// nothing of that kind.
	read object.Tree

	creater    resource.Creater // who answers instead of storing; nil for most
	admission  *Admission
	managed    any // who manages which field, before admission
	guards     []kv.Guard
	unresolved object.Tree     // object before it was resolved
	marks      []resource.Mark // by which it was resolved
	hooked     resource.Change // what the hooks of the kind are told
	gone       bool            // nothing holds the object any more, and it is removed
	ending     bool            // the object is marked, although nothing holds it
	last       object.Tree     // what the client sees of it then, if not object
	encoded    object.Encoded  // to be stored, if it is not gone
	same       bool            // encoded is what the client sees
	endTurn    func()
	posted     bool // by Create, not by an update that found nothing
	generates  bool // the object brings its name, or is given one
	generated  bool // it was given one
	result     Result
}

// run takes a write through phases and stores it.
func (w *write) run(ctx context.Context, phases []func(*write, context.Context) error) (Result, error) {
	defer func() {
		if w.endTurn != nil {
			w.endTurn()
		}
		if a := w.admission; a != nil && a.endTurn != nil {
			a.endTurn(w.result.Revision)
		}
	}()
	err := w.through(ctx, phases)
	for again := err == nil; again; again = w.overtaken(ctx, err) {
		err = w.through(ctx, storing[:])
	}
	if err != nil {
		return Result{}, err
	}
	return w.result, nil
}

func (w *write) through(ctx context.Context, phases []func(*write, context.Context) error) error {
	for _, phase := range phases {
		if err := phase(w, ctx); err != nil {
			return err
		}
	}
	return nil
}

// overtaken reports whether a write failed because one of its marks has moved, and is to be
// resolved again. Somebody else has written then, so the writers of a kind do not keep
// each other from writing for ever.
func (w *write) overtaken(ctx context.Context, err error) bool {
	var stale *staleError
	isStale := func(m resource.Mark) bool { return m.Key == stale.key }
	return errors.As(err, &stale) && slices.ContainsFunc(w.marks, isStale) && ctx.Err() == nil
}

// projection is set where the client sees another kind than the resource's.
func (w *write) projection() *resource.Projection {
	if s := w.subresource(); s != nil {
		return s.Projection
	}
	return nil
}

// hooks is the write as the hooks of the kind see it now. It is good until the next call.
func (w *write) hooks() *resource.Change {
	w.hooked = resource.Change{
		Object: w.object, Old: w.old,
		Namespace: w.target.Namespace, Name: w.target.Name, Subresource: w.target.Subresource,
		Version: cmp.Or(w.asked, w.target.Version).Name, DryRun: w.options.DryRun,
	}
	return &w.hooked
}

func (w *write) subresource() *resource.Subresource {
	return w.target.Version.Subresource(w.target.Subresource)
}

// decode makes the object that is wanted.
func (w *write) decode(ctx context.Context) (err error) {
	if w.current != nil {
		if w.options.AsStored {
			w.target.Version = storedIn(w.target.Definition, w.target.Version, w.current)
		}
		if w.old, err = w.Decode(ctx, w.target.Definition, w.target.Version, w.current); err != nil {
			return err
		}
		w.shownOld = w.old
		if p := w.projection(); p != nil {
			if w.shownOld, err = p.Open(w.old); err != nil {
				return err
			}
		}
	}
	w.shown, err = w.change(w.shownOld)
	return err
}

// complete makes what came from a client an object of its schema.
func (w *write) complete(context.Context) (err error) {
	if w.options.Complete != nil {
		if w.shown, err = w.options.Complete(w.shown); err != nil {
			return err
		}
	}
	w.settle()
	return nil
}

// account notes who manages which field.
func (w *write) account(ctx context.Context) error {
	switch {
	case w.options.Account == nil:
	case w.creater != nil:
		w.accountAsked(ctx)
	default:
		w.shown = w.options.Account(ctx, w.shownOld, w.shown)
	}
	return ctx.Err()
}

// accountAsked accounts for an object that is not stored as if it were: an empty list has no
// manager, though the kind sees it.
func (w *write) accountAsked(ctx context.Context) {
	_, v := w.target.Shown()
	s, ok := v.Schema.(resource.SettlingSchema)
	if !ok {
		w.shown = w.options.Account(ctx, w.shownOld, w.shown)
		return
	}
	settled, dropped := s.Settle(w.shown)
	accounted := w.options.Account(ctx, w.shownOld, settled)
	if !dropped {
		w.shown = accounted
		return
	}
	object.Metadata(w.shown)["managedFields"] = object.Metadata(accounted)["managedFields"]
}

// address checks that the object is the one that the request is about.
func (w *write) address(context.Context) error {
	if err := w.merge(); err != nil {
		return err
	}
	switch {
	case w.creater != nil:
		return matchNamespace(&w.target, w.object)
	case w.current == nil:
		return w.addressNew()
	}
	return addressOld(&w.target, w.object, w.old)
}

// merge makes the object of what the client sees of it.
func (w *write) merge() error {
	w.object = w.shown
	if p := w.projection(); p != nil {
		w.object = object.CloneTree(w.old)
		return p.Merge(w.object, w.shown)
	}
	return nil
}

// addressAgain checks what admission has made of the object. Its name is validated like other
// fields that may not change.
func (w *write) addressAgain(ctx context.Context) error {
	if w.creater != nil || w.current == nil {
		return w.address(ctx)
	}
	if err := w.merge(); err != nil {
		return err
	}
	if err := matchNamespace(&w.target, w.object); err != nil {
		return err
	}
	return matchRevision(&w.target, w.object, w.old)
}

// mutate lets admission change the object. What it has changed is completed like what a
// client sends.
func (w *write) mutate(ctx context.Context) (err error) {
	if w.admission == nil {
		w.admission = w.admissionOf(ctx)
	}
	if w.shown != nil {
		metadata, _ := w.shown["metadata"].(map[string]any)
		w.managed = metadata["managedFields"]
	}
	if err := w.plugins.mutate(ctx, w.admission); err != nil {
		return err
	}
	switch {
	case w.admission.Operation == Delete:
		return nil
	case w.admission.Changed:
		if err := w.completeAgain(); err != nil {
			return err
		}
	case w.admission.Extended && w.read != nil:
		w.read, _ = graft(w.read, w.shown).(object.Tree)
	}
	DropDuplicateOwners(w.shown, " after mutating admission happens", w.admission.Warn)
	if w.admission.Changed || w.admission.Extended {
		if err := w.addressAgain(ctx); err != nil {
			return err
		}
	}
	if w.current != nil && object.ResourceVersion(w.object) == "" { // which admission has not seen
		object.SetMetaString(w.object, "resourceVersion", object.ResourceVersion(w.old))
	}
	return nil
}

// completeAgain makes what admission has changed an object of its schema. Nobody is told
// of fields that are unknown.
func (w *write) completeAgain() (err error) {
	_, v := w.target.Shown()
	if w.shown, _, err = v.Schema.Complete(w.admission.Object); err != nil {
		return err
	}
	w.settle()
	w.keepManaged()
	w.admission.Object = w.shown
	return nil
}

// keepManaged takes back what admission has made of managedFields, if that says nothing.
func (w *write) keepManaged() {
	metadata, ok := w.shown["metadata"].(map[string]any)
	if !ok {
		return
	}
	err := apply.ValidateManaged(w.shown)
	if err == nil {
		return
	}
	if delete(metadata, "managedFields"); w.managed != nil {
		metadata["managedFields"] = w.managed
	}
	w.admission.Warn(".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: " + err.Error())
}

// translate brings the object, and what it replaces, into the version in which the kind
// decides on it.
func (w *write) translate(ctx context.Context) (err error) {
	w.reread()
	d, from := w.target.Definition, w.target.Version
	to := deciding(d, from)
	if from == to {
		return nil
	}
	if errs := validateType(w.target, w.object); len(errs) > 0 {
		return invalidType(w.object, errs)
	}
	if w.object, err = Convert(ctx, d, to, object.CloneTree(w.object)); err != nil {
		return err
	}
	if w.current != nil {
		if w.old, err = w.Decode(ctx, d, to, w.current); err != nil {
			return err
		}
	}
	w.target.Version, w.asked = to, from
	return nil
}

// deciding returns the version in which a kind decides on an object of version v.
func deciding(d *resource.Definition, v *resource.Version) *resource.Version {
	if d.Dialect.DecidesAsStored {
		return d.StorageVersion()
	}
	return v
}

// seen returns t, the object that is written, as its client sees it.
func (w *write) seen(ctx context.Context, t object.Tree) (object.Tree, error) {
	if w.asked == nil {
		return t, nil
	}
	t = object.CloneTree(t)
	w.target.Version.Schema.Default(t) // as it will be when it is read
	return Convert(ctx, w.target.Definition, w.asked, t)
}

// admit lets admission refuse the object as it will be stored. Before that, who creates by an
// update is asked whether they may create.
func (w *write) admit(ctx context.Context) (err error) {
	if w.current == nil && !w.posted && w.creater == nil {
		if err = request.May(ctx, "create"); err != nil {
			return err
		}
	}
	if w.admission.Operation != Delete {
		if err := w.showAdmission(ctx); err != nil {
			return err
		}
	}
	if err := w.plugins.validate(ctx, w.admission); err != nil {
		return err
	}
	w.guards = append(w.guards, w.admission.Guards...)
	return nil
}

// showAdmission shows admission the object as it will be stored, as a client will read it.
func (w *write) showAdmission(ctx context.Context) (err error) {
	a := w.admission
	a.Read = w.read
	if w.target.Name != "" {
		a.Target.Name = w.target.Name // which may have been generated
	}
	p := w.projection()
	if p == nil {
		a.Object, err = w.seen(ctx, w.object)
		return err
	}
	if a.Object, err = p.Open(w.object); err != nil {
		return err
	}
	delete(object.Metadata(a.Object), "managedFields")
	if a.old != nil {
		a.old = object.CloneTree(a.old)
		delete(object.Metadata(a.old), "managedFields")
	}
	return nil
}

// canonicalize brings the object into the form in which it is stored.
func (w *write) canonicalize(context.Context) error {
	w.settleRead()
	if c := w.target.Definition.Canonicalize; c != nil {
		c(w.object)
	}
	return nil
}

// resolve waits for the kind's turn, if it has turns, and brings the object to what
// follows from other objects. The turn ends with the write. Nobody outside is asked anything
// meanwhile.
func (w *write) resolve(ctx context.Context) (err error) {
	d := w.target.Definition
	if d.Begin != nil && w.endTurn == nil {
		if w.endTurn, err = d.Begin(ctx); err != nil {
			return err
		}
	}
	w.marks = nil
	if d.Resolve != nil {
		if w.unresolved == nil {
			w.unresolved = w.object
		}
		w.object = maps.Clone(w.unresolved)
		if w.marks, err = d.Resolve(ctx, w.hooks()); err != nil {
			return err
		}
	}
	counted, err := w.plugins.resolve(ctx, w.admission)
	w.marks = append(w.marks, counted...)
	return err
}

// encode makes the bytes that are stored, and refuses those that nobody could read.
func (w *write) encode(ctx context.Context) (err error) {
	d, v := w.target.Definition, w.target.Version
	w.gone = w.gone || w.current != nil && !w.ending && deletable(d, w.object)
	w.keepTimes()
	var data []byte
	switch {
	case w.gone:
		w.object, err = w.seen(ctx, w.object)
		return err
	case w.asked != nil:
		data = encode(w.object)
		w.object, err = w.seen(ctx, w.object)
	case w.options.AsStored && w.current != nil:
		data, w.same = encode(w.object), true
	default:
		data, w.object, w.same, err = stored(ctx, d, v, w.object)
	}
	if err != nil {
		return err
	}
	if w.encoded, err = object.Scan(data, 0); err != nil {
		return status.Internal(fmt.Errorf("%s cannot be stored: %w", w.target.key(), err))
	}
	return nil
}
