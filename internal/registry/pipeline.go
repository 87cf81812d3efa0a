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

// asking and making are the phases of every write, in this order. A phase that fails ends the write,
// and nothing is stored. An update that conflicts with another write begins again with the first
// phase. A create whose generated name or allocation is taken begins again with making: mutating
// admission runs once.
//
// Fields are accounted for before mutating admission, as in Kubernetes: fields set by a webhook have
// no manager.
var asking = [...]func(*write, context.Context) error{
	(*write).decode,   // the new object, from the body of a request or from a patch of the old object
	(*write).complete, // an object of its schema: pruned, with defaults
	(*write).account,  // the manager of each field
	(*write).address,  // is it the object of the request, in the state that the client saw?
	(*write).mutate,   // mutating admission; changed objects are completed again
}

var making = [...]func(*write, context.Context) error{
	(*write).translate,    // conversion to the version in which the kind validates
	(*write).prepare,      // metadata of the server, and fields kept from the old object
	(*write).validate,     // all errors of the object
	(*write).canonicalize, // the stored form
	(*write).admit,        // validating admission
}

// deletion are the phases of a write that marks or removes an object.
var deletion = [...]func(*write, context.Context) error{(*write).mutate, (*write).admit}

// storing are the phases that end every write. They are repeated if a mark that resolve used has
// moved.
var storing = [...]func(*write, context.Context) error{
	(*write).resolve, // consequences of other objects
	(*write).encode,  // the stored bytes, encoded once
	(*write).commit,  // stored and visible
}

// answering are the phases of a create that a Creater answers. Nothing is stored.
var answering = [...]func(*write, context.Context) error{
	(*write).decode,
	(*write).complete,
	(*write).account,
	(*write).address,
	(*write).mutate,
	(*write).validateSent, // the object of the request is not stored
	(*write).admit,
	(*write).answer, // by the kind
}

// A write is one attempt to write one object, on its way through the phases.
type write struct {
	*Registry
	target  Target
	options WriteOptions
	change  Change

	current *watchcache.Object // the stored object; nil for a create
	// old and object are the stored and the new object, in the version of the target. old is nil for a
	// create.
	old, object object.Tree
	// shownOld and shown are the same objects as the client sees them. Through a subresource they may
	// be of another kind.
	shownOld, shown  object.Tree
	requestedVersion *resource.Version // the version of the client, if it is no longer that of the target
	// read is the object with fields that are dropped before it is stored; nil if there are none.
	read object.Tree

	creater    resource.Creater // handles a create instead of the store; nil for most kinds
	admission  *Admission
	managed    any // managedFields before admission
	guards     []kv.Guard
	unresolved object.Tree     // object before it was resolved
	marks      []resource.Mark // marks of resolve
	hooked     resource.Change // the argument of the kind's hooks
	gone       bool            // nothing holds the object any more, and it is removed
	ending     bool            // the object is marked, although nothing holds it
	last       object.Tree     // the client's view of it then, if not object
	encoded    object.Encoded  // the bytes to store, unless gone
	same       bool            // encoded is the client's view
	endTurn    func()
	isCreate   bool // by Create, not by an update of a missing object
	generates  bool // the name comes with the object or is generated
	generated  bool // the name was generated
	result     Result
}

// run runs a write through phases and stores it.
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

// overtaken reports whether a write failed because one of its marks has moved, and needs to be
// resolved again. Another write has then succeeded, so writers of a kind cannot block each other
// forever.
func (w *write) overtaken(ctx context.Context, err error) bool {
	var stale *staleError
	isStale := func(m resource.Mark) bool { return m.Key == stale.key }
	return errors.As(err, &stale) && slices.ContainsFunc(w.marks, isStale) && ctx.Err() == nil
}

// projection returns the projection of a subresource of another kind, or nil.
func (w *write) projection() *resource.Projection {
	if s := w.subresource(); s != nil {
		return s.Projection
	}
	return nil
}

// hooks returns the argument of the kind's hooks. It is valid until the next call.
func (w *write) hooks() *resource.Change {
	w.hooked = resource.Change{
		Object: w.object, Old: w.old,
		Namespace: w.target.Namespace, Name: w.target.Name, Subresource: w.target.Subresource,
		Version: cmp.Or(w.requestedVersion, w.target.Version).Name, DryRun: w.options.DryRun, Gates: w.gates,
	}
	return &w.hooked
}

func (w *write) subresource() *resource.Subresource {
	return w.target.Version.Subresource(w.target.Subresource)
}

// decode creates the new object.
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

// complete prunes and defaults the object of a client.
func (w *write) complete(context.Context) (err error) {
	if w.options.Complete != nil {
		if w.shown, err = w.options.Complete(w.shown); err != nil {
			return err
		}
	}
	w.dropUnstored()
	return nil
}

// account records the manager of each field.
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

// accountAsked is account for an object that is not stored: an empty list has no manager, though the
// kind sees it.
func (w *write) accountAsked(ctx context.Context) {
	_, v := w.target.Shown()
	s, ok := v.Schema.(resource.DroppingSchema)
	if !ok {
		w.shown = w.options.Account(ctx, w.shownOld, w.shown)
		return
	}
	stored, dropped := s.DropUnstored(w.shown)
	accounted := w.options.Account(ctx, w.shownOld, stored)
	if !dropped {
		w.shown = accounted
		return
	}
	object.Metadata(w.shown)["managedFields"] = object.Metadata(accounted)["managedFields"]
}

// address checks that the object is the target of the request.
func (w *write) address(context.Context) error {
	if w.projection() != nil {
		if err := w.target.Match(w.shown); err != nil {
			return err
		}
	}
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

// merge creates the object from the client's view of it.
func (w *write) merge() error {
	w.object = w.shown
	if p := w.projection(); p != nil {
		w.object = object.CloneTree(w.old)
		return p.Merge(w.object, w.shown)
	}
	return nil
}

// addressAgain repeats address after admission. A changed name is an error of validation, as with
// other immutable fields.
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

// mutate runs mutating admission. A changed object is completed like one from a client.
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
	if n, err := askedRevision(w.object); w.current != nil && err == nil && n == 0 { // admission has not seen it
		object.SetMetaString(w.object, "resourceVersion", object.ResourceVersion(w.old))
	}
	return nil
}

// completeAgain prunes and defaults the object after admission. Unknown fields cause no warning.
func (w *write) completeAgain() (err error) {
	_, v := w.target.Shown()
	if w.shown, _, err = v.Schema.Complete(w.admission.Object); err != nil {
		return err
	}
	w.dropUnstored()
	w.keepManaged()
	w.admission.Object = w.shown
	return nil
}

// keepManaged restores managedFields if admission has made them invalid.
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

// translate converts the new and the old object to the version in which the kind validates.
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
	w.target.Version, w.requestedVersion = to, from
	return nil
}

// deciding returns the version in which a kind validates an object of version v.
func deciding(d *resource.Definition, v *resource.Version) *resource.Version {
	if d.Dialect.DecidesAsStored {
		return d.StorageVersion()
	}
	return v
}

// seen returns t, the new object, as its client sees it.
func (w *write) seen(ctx context.Context, t object.Tree) (object.Tree, error) {
	if w.requestedVersion == nil {
		return t, nil
	}
	t = object.CloneTree(t)
	w.target.Version.Schema.Default(t) // as a read will show it
	return Convert(ctx, w.target.Definition, w.requestedVersion, t)
}

// admit runs validating admission on the object as it will be stored. First, an update that creates is
// authorized as a create.
func (w *write) admit(ctx context.Context) (err error) {
	if w.current == nil && !w.isCreate && w.creater == nil {
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

// showAdmission sets the objects of the Admission to their stored form, as a client will read it.
func (w *write) showAdmission(ctx context.Context) (err error) {
	a := w.admission
	a.Read = w.read
	if w.target.Name != "" {
		a.Target.Name = w.target.Name // it may have been generated
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

// canonicalize brings the object into its stored form.
func (w *write) canonicalize(context.Context) error {
	w.dropRead()
	if c := w.target.Definition.Canonicalize; c != nil {
		c(w.object)
	}
	return nil
}

// resolve waits for the turn of the kind, if it has turns, and applies the consequences of other
// objects. The turn ends with the write. No webhook is called during a turn.
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

// dropApplied drops the nulls that an apply leaves from the result, as a read does.
func (w *write) dropApplied() {
	v := w.target.Version
	if filling, ok := v.Schema.(resource.FillingSchema); ok && w.options.Applied && w.same && filling.HasNulls(w.object) {
		w.object, w.same = object.CloneTree(w.object), false
		v.Schema.Default(w.object)
	}
}

// encode encodes the object for the store, and rejects an undecodable one.
func (w *write) encode(ctx context.Context) (err error) {
	d, v := w.target.Definition, w.target.Version
	w.gone = w.gone || w.current != nil && !w.ending && deletable(d, w.object)
	w.keepTimes()
	var data []byte
	switch {
	case w.gone:
		w.object, err = w.seen(ctx, w.object)
		return err
	case w.requestedVersion != nil:
		data = encode(w.object)
		w.object, err = w.seen(ctx, w.object)
	case w.options.AsStored && w.current != nil:
		data, w.same = encode(w.object), true
	default:
		data, w.object, w.same, err = stored(ctx, d, v, w.object)
		w.dropApplied()
	}
	if err != nil {
		return err
	}
	if w.encoded, err = object.Scan(data, 0); err != nil {
		return status.Internal(fmt.Errorf("%s cannot be stored: %w", w.target.key(), err))
	}
	return nil
}
