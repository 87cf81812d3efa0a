package registry

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
)

// generateAttempts is how many names are tried for a generateName.
const generateAttempts = 8

// maxDepth is how deep an object may be nested that is stored. A client decodes it
// as part of a list, a Table or an event, and one object must not make all of a
// list something that nobody can decode.
const maxDepth = object.MaxDepth - 8

// Create stores a new object, which Complete has seen and which becomes the
// Registry's. Target.Name may be left out.
func (r *Registry) Create(ctx context.Context, target Target, t object.Tree, o WriteOptions) (Result, error) {
	if object.ResourceVersion(t) != "" {
		return Result{}, status.BadRequest("resourceVersion should not be set on objects to be created")
	}
	if err := matchNamespace(&target, t); err != nil {
		return Result{}, err
	}
	if target.Name == "" {
		target.Name = object.Name(t)
	} else if err := matchName(&target, t); err != nil {
		return Result{}, err
	}
	result, err := r.createNamed(ctx, target, t, o)
	if errors.Is(err, errConflict) {
		target.Name = object.Name(t)
		err = r.exists(ctx, target)
	}
	return result, err
}

// exists says that there is an object of a name, and whether it is about to go.
func (r *Registry) exists(ctx context.Context, target Target) error {
	e := status.AlreadyExists(target.Definition.GroupResource(), target.Name)
	if o, err := r.current(ctx, &target); err == nil && o != nil && o.Deleting {
		e.ErrStatus.Message = "object is being deleted: " + e.ErrStatus.Message
	}
	return e
}

// createNamed creates an object that has a name or is given a random one.
func (r *Registry) createNamed(ctx context.Context, target Target, t object.Tree, o WriteOptions) (Result, error) {
	base := object.MetaString(t, "generateName")
	if target.Name != "" || base == "" {
		return r.create(ctx, target, t, o)
	}
	for attempt := 1; ; attempt++ {
		target.Name = generateName(base)
		object.SetMetaString(t, "name", target.Name)
		result, err := r.create(ctx, target, object.CloneTree(t), o)
		if attempt == generateAttempts || !errors.Is(err, errConflict) {
			return result, err
		}
	}
}

func (r *Registry) create(ctx context.Context, target Target, t object.Tree, o WriteOptions) (Result, error) {
	d, v := target.Definition, target.Version
	if d.Terminating {
		return Result{}, status.Forbidden(d.GroupResource(), target.Name,
			errors.New("create not allowed while custom resource definition is terminating"))
	}
	end, err := begin(ctx, d)
	if err != nil {
		return Result{}, err
	}
	defer end()
	r.systemMetadata(d, t)
	a := &Admission{Operation: Create, Target: target, Object: t, DryRun: o.DryRun, Warn: o.Warn}
	if err := r.admit.Mutate(ctx, a); err != nil {
		return Result{}, err
	}
	t = a.Object
	if v.Keep != nil {
		v.Keep(t, nil)
	}
	if d.Prepare != nil {
		d.Prepare(t, nil)
	}
	if err := r.validate(ctx, target, t, nil, o); err != nil {
		return Result{}, err
	}
	if err := r.admit.Validate(ctx, a); err != nil {
		return Result{}, err
	}
	if d.Settle != nil {
		d.Settle(t, nil)
	}
	data, t, same, err := stored(ctx, d, v, t)
	if err != nil {
		return Result{}, err
	}
	if o.DryRun {
		return r.dryCreate(ctx, target, t)
	}
	revision, err := r.commit(ctx, d, kv.Write{Key: target.key(), Value: data, Expect: kv.Absent, Guards: a.Guards})
	if err != nil {
		return Result{}, err
	}
	setRevision(t, revision)
	result := Result{Tree: t, Revision: revision, Created: true}
	if same {
		result.Stored = data
	}
	return result, nil
}

func (r *Registry) dryCreate(ctx context.Context, target Target, t object.Tree) (Result, error) {
	o, err := r.current(ctx, &target)
	if err != nil {
		return Result{}, err
	}
	if o != nil {
		return Result{}, errConflict
	}
	return Result{Tree: t, Created: true}, nil
}

// validate collects everything that is wrong with t. old is nil for a new
// object.
func (r *Registry) validate(ctx context.Context, target Target, t, old object.Tree, o WriteOptions) error {
	d, v := target.Definition, target.Version
	if errs := validateType(target, t); len(errs) > 0 {
		return invalidType(t, errs)
	}
	if object.Deeper(t, maxDepth) {
		return status.BadRequest("the object, with what managedFields says of it, is nested more than %d levels deep", maxDepth)
	}
	errs := validateMetadata(d, t, old)
	judge := v.Schema.Validate
	if s, ok := v.Schema.(resource.StatusSchema); ok && target.Subresource == "status" {
		judge = s.ValidateStatus
	}
	ctx = resource.WithWarn(ctx, o.Warn)
	errs = append(errs, judge(ctx, t, old)...)
	validate := d.Validate
	if s := v.Subresource(target.Subresource); s != nil && s.Validate != nil {
		validate = s.Validate
	}
	if validate != nil {
		errs = append(errs, validate(t, old)...)
	}
	if s, ok := v.Schema.(resource.RuledSchema); ok {
		errs = append(errs, s.ValidateRules(ctx, t, old, errs)...)
	}
	if len(errs) > 0 {
		return target.invalid(object.Name(t), errs)
	}
	if d.Warn != nil {
		o.warn(d.Warn(t, old))
	}
	return nil
}

// validateType checks that t says that it is what the request is about.
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

func invalidType(t object.Tree, errs field.ErrorList) error {
	kind := schema.FromAPIVersionAndKind(object.APIVersion(t), object.Kind(t)).GroupKind()
	return status.Invalid(kind, object.Name(t), errs)
}
