package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// generateAttempts limits the names tried for a generateName.
const generateAttempts = 8

// maxDepth limits the nesting of a stored object. A client decodes it as part of a list, a Table or an
// event, and one object must not make a whole list undecodable.
const maxDepth = object.MaxDepth - 8

// Create stores the new object that change returns for nil. Target.Name may be empty.
func (r *Registry) Create(ctx context.Context, target Target, change Change, o WriteOptions) (Result, error) {
	return o.fitting(func(o WriteOptions) (Result, error) {
		asked := &write{Registry: r, target: target, options: o, change: change, isCreate: true, generates: target.Name == ""}
		if err := asked.through(ctx, asking[:]); err != nil {
			return Result{}, err
		}
		for attempt, taken := 1, 1; ; {
			w := asked.attempt()
			result, err := w.run(ctx, making[:])
			switch {
			case errors.Is(err, resource.ErrTaken):
				if err := w.target.givenUp(ctx, taken); err != nil {
					return Result{}, err
				}
				taken++
				continue
			case !errors.Is(err, errConflict):
				return result, err
			case !w.generated || attempt == generateAttempts:
				return Result{}, w.exists(ctx)
			}
			attempt++
		}
	})
}

// attempt returns one attempt at the requested create. A copy is needed only for an object with a
// generated name or with allocations, which may take several attempts.
func (w *write) attempt() *write {
	if w.target.Name != "" && w.target.Definition.Allocate == nil {
		return w
	}
	another := *w
	another.object, another.read = object.CloneTree(w.object), object.CloneTree(w.read)
	another.shown = another.object
	admission := *w.admission
	admission.Object, another.admission = another.object, &admission
	return &another
}

// allocateAttempts limits the allocations for one object, after each of which another write took the
// same value.
const allocateAttempts = 100

// givenUp returns an error once the limit is reached.
func (t *Target) givenUp(ctx context.Context, taken int) error {
	if taken < allocateAttempts {
		return ctx.Err()
	}
	return status.Conflict(t.Definition.GroupResource(), t.Name, resource.ErrTaken)
}

// Given is the Change that creates t.
func Given(t object.Tree) Change {
	return func(object.Tree) (object.Tree, error) { return object.CloneTree(t), nil }
}

// exists returns the error for a name that exists, and tells whether that object is being deleted.
// With a generateName the client may retry, even if it also chose the name.
func (w *write) exists(ctx context.Context) error {
	taken := status.AlreadyExists
	if object.MetaString(w.object, "generateName") != "" {
		taken = status.GeneratedNameTaken
	}
	e := taken(w.target.Definition.GroupResource(), w.target.Name)
	if o, err := w.Registry.current(ctx, &w.target); err == nil && o != nil && o.Deleting() {
		e.ErrStatus.Message = "object is being deleted: " + e.ErrStatus.Message
	}
	return e
}

// addressNew checks that a new object belongs to the target of the request.
func (w *write) addressNew() error {
	d, t := w.target.Definition, w.object
	// Clients send a dry run with an object that they have read, and get it back with its
	// resourceVersion: only a real create checks it.
	if !w.isCreate || !w.options.DryRun {
		if err := w.namesRevision(); err != nil {
			return err
		}
	}
	if w.generates {
		if err := matchNamespace(&w.target, t); err != nil {
			return err
		}
		w.target.Name = object.Name(t)
	} else if err := w.target.Match(t); err != nil {
		return err
	}
	if !w.options.DryRun {
		object.SetMetaString(t, "resourceVersion", "")
	}
	if d.Terminating {
		return status.Forbidden(d.GroupResource(), w.target.Name,
			errors.New("create not allowed while custom resource definition is terminating"))
	}
	return nil
}

// namesRevision rejects a new object with a resourceVersion. In a POST, zero and values that are no
// number count as empty, as in Kubernetes.
func (w *write) namesRevision() error {
	if !w.isCreate {
		_, err := askedRevision(w.object)
		return err
	}
	if n, err := strconv.ParseUint(object.ResourceVersion(w.object), 10, 64); err == nil && n != 0 {
		return status.BadRequest("resourceVersion should not be set on objects to be created")
	}
	return nil
}

// prepare sets the metadata of the server, and the fields that it keeps from the old object.
func (w *write) prepare(ctx context.Context) error {
	d, v := w.target.Definition, w.target.Version
	if d.Authorize != nil && w.target.Subresource == "" {
		if err := d.Authorize(ctx, w.hooks()); err != nil {
			return err
		}
	}
	if w.current == nil {
		if base := object.MetaString(w.object, "generateName"); w.target.Name == "" && base != "" {
			w.generated = true
			w.target.Name = generateName(base)
			object.SetMetaString(w.object, "name", w.target.Name)
		}
		w.systemMetadata(d, w.object)
	} else {
		keepSystemMetadata(d, w.object, w.old)
	}
	ctx = resource.WithWarn(ctx, w.options.Warn)
	if d.CountsDropped {
		w.count()
	}
	revert := v.Revert
	if s := w.subresource(); s != nil {
		revert = s.Revert
	} else if d.Allocate != nil {
		if err := d.Allocate(ctx, w.hooks()); err != nil {
			return err
		}
	}
	if revert != nil {
		revert(ctx, w.hooks())
	}
	if d.Prepare != nil {
		d.Prepare(ctx, w.hooks())
	}
	if w.target.Name == "" {
		w.target.Name = object.Name(w.object) // the kind may have set it
	}
	if !d.CountsDropped {
		w.count()
	}
	return nil
}

// validate collects all errors of the object.
func (w *write) validate(ctx context.Context) error {
	d, v, t, old := w.target.Definition, w.target.Version, w.object, w.old
	if errs := validateType(w.target, t); len(errs) > 0 {
		return invalidType(t, w.withType(ctx, errs))
	}
	if object.Deeper(t, maxDepth) {
		return status.BadRequest("the object, with what managedFields says of it, is nested more than %d levels deep", maxDepth)
	}
	bySchema := v.Schema.Validate
	if s, ok := v.Schema.(resource.StatusSchema); ok && w.target.Subresource == "status" {
		bySchema = s.ValidateStatus
	}
	ctx = resource.WithWarn(ctx, w.options.Warn)
	errs := bySchema(ctx, t, old)
	validate, warn := d.Validate, d.Warn
	if s := w.subresource(); s != nil {
		if s.Validate != nil {
			validate = s.Validate
		}
		if s.Warn != nil {
			warn = s.Warn
		}
	}
	change := w.hooks()
	change.Objects = w.objects
	if validate != nil {
		errs = append(errs, validate(ctx, change)...)
	}
	if len(errs) == 0 || old != nil || !d.ValidatesMetadataLast {
		errs = append(validateMetadata(d, t, old), errs...)
	}
	if errs = w.withRules(ctx, errs); len(errs) > 0 {
		return w.target.invalid(object.Name(t), errs)
	}
	if warn != nil {
		w.options.warn(warn(ctx, change)...)
	}
	return nil
}

// validateType checks apiVersion and kind of t against the request.
func validateType(target Target, t object.Tree) (errs field.ErrorList) {
	d := target.Definition
	if kind := object.Kind(t); kind != d.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, fmt.Sprintf("must be %s", d.Kind)))
	}
	want := d.APIVersion(target.Version.Name)
	if got := object.APIVersion(t); got != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got, fmt.Sprintf("must be %s", want)))
	}
	return errs
}

// withRules appends the errors of the CEL rules of the schema.
func (w *write) withRules(ctx context.Context, errs field.ErrorList) field.ErrorList {
	if s, ok := w.target.Version.Schema.(resource.RuledSchema); ok {
		errs = append(errs, s.ValidateRules(ctx, w.object, w.old, errs)...)
	}
	return errs
}

// withType appends to errs, which concern apiVersion and kind, all other errors of the object. The
// schema does not check its single values. A new object's metadata is not checked.
func (w *write) withType(ctx context.Context, errs field.ErrorList) field.ErrorList {
	d, v, t, old := w.target.Definition, w.target.Version, w.object, w.old
	if s, ok := v.Schema.(resource.PartedSchema); ok {
		errs = append(errs, s.ValidateParts(ctx, t, old)...)
	}
	errs = w.withRules(ctx, errs) // rules run also if the metadata is invalid
	if old != nil {
		errs = append(validateMetadata(d, t, old), errs...)
	}
	return errs
}

func invalidType(t object.Tree, errs field.ErrorList) error {
	kind := schema.FromAPIVersionAndKind(object.APIVersion(t), object.Kind(t)).GroupKind()
	return status.Invalid(kind, object.Name(t), errs)
}
