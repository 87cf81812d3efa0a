package registry

import (
	"context"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// Creater returns the handler for creates of the target, or nil: the store handles them.
func (t *Target) Creater() resource.Creater {
	if s := t.Version.Subresource(t.Subresource); s != nil {
		return s.Creater
	}
	return t.Version.Creater
}

// Shown returns the type that the client reads and writes: the resource, or the kind of its
// subresource.
func (t *Target) Shown() (*resource.Definition, *resource.Version) {
	if s := t.Version.Subresource(t.Subresource); s != nil && s.Definition != nil {
		return s.Definition, s.Definition.StorageVersion()
	}
	return t.Definition, t.Version
}

// Answer calls the Creater of the target for a create. The result is nil for an empty response.
func (r *Registry) Answer(ctx context.Context, target Target, change Change, o WriteOptions) (object.Tree, error) {
	w := &write{Registry: r, target: target, options: o, change: change, creater: target.Creater()}
	err := w.through(ctx, answering[:])
	return w.result.Tree, err
}

// validateSent collects all errors of an object sent to a Creater.
func (w *write) validateSent(ctx context.Context) error {
	d, v := w.target.Shown()
	if errs := validateType(Target{Definition: d, Version: v}, w.object); len(errs) > 0 {
		return invalidType(w.object, errs)
	}
	validate := w.target.Definition.Validate
	if s := w.subresource(); s != nil {
		validate = s.Validate
	}
	if validate == nil {
		return nil
	}
	if errs := validate(ctx, w.hooks()); len(errs) > 0 {
		return status.Invalid(d.ErrorKind(), object.Name(w.object), errs)
	}
	return nil
}

// answer calls the Creater of the kind.
func (w *write) answer(ctx context.Context) (err error) {
	if err := w.options.fits(); err != nil {
		return err
	}
	asked := w.hooks()
	asked.Objects = w.objects
	w.result.Tree, err = w.creater.Create(resource.WithWarn(ctx, w.options.Warn), asked)
	return err
}

// Connect admits a connection to the target and returns its handler. The Subresource of the target has
// a Connecter. warn may be nil.
func (r *Registry) Connect(ctx context.Context, target Target, c resource.Connection, warn func(message string)) (http.Handler, error) {
	s := target.Version.Subresource(target.Subresource)
	if !s.Reads {
		var err error
		if c.Options, err = r.admitConnection(ctx, target, c.Options, WriteOptions{Warn: warn}); err != nil {
			return nil, err
		}
	}
	c.Namespace, c.Name, c.Objects, c.Gates = target.Namespace, target.Name, r.objects, r.gates
	return s.Connecter.Connect(ctx, c)
}

// admitConnection runs admission for a connection. The plugins see the options and may change them;
// the result is returned.
func (r *Registry) admitConnection(ctx context.Context, target Target, options runtime.Object, o WriteOptions) (runtime.Object, error) {
	a := &Admission{Operation: Connect, Target: target, Gates: r.gates, options: o}
	if options != nil {
		var err error
		if a.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(options); err != nil {
			return nil, status.Internal(err)
		}
	}
	a.from(ctx)
	if err := r.plugins.mutate(ctx, a); err != nil {
		return nil, err
	}
	if a.Changed && options != nil {
		changed := reflect.New(reflect.TypeOf(options).Elem()).Interface().(runtime.Object)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(a.Object, changed); err != nil {
			return nil, status.Internal(err)
		}
		options = changed
	}
	return options, r.plugins.validate(ctx, a)
}
