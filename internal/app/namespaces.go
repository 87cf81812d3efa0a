package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/store/kv"
)

// ensureNamespaces creates the system namespaces concurrently, so that one write to disk is enough.
func (w *wired) ensureNamespaces(ctx context.Context, d *resource.Definition) error {
	names := builtin.SystemNamespaces()
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() {
			errs[i] = w.unlessRejected(w.ensure(ctx, d, object.Tree{"metadata": object.Tree{"name": name}}))
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// unlessRejected logs that a default object was rejected, such as by a policy, so that the server starts and the cause can be
// removed. It returns any other error.
func (w *wired) unlessRejected(err error) error {
	var rejected *status.Error
	if errors.As(err, &rejected) && rejected.ErrStatus.Code < http.StatusInternalServerError {
		w.log.Warn("a default object could not be created, and the next start tries again; for the Service kubernetes, check its ServiceCIDR and --service-cluster-ip-range", "error", err)
		return nil
	}
	return err
}

// exists reports whether an object with the name of t exists.
func (w *wired) exists(ctx context.Context, d *resource.Definition, t object.Tree) (bool, error) {
	_, err := w.backend.Get(ctx, d.Key(object.Namespace(t), object.Name(t)), kv.Latest)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ensure creates an object if it is missing. Its errors name the object.
func (w *wired) ensure(ctx context.Context, d *resource.Definition, t object.Tree) error {
	there, err := w.exists(ctx, d, t)
	if there || err != nil {
		return err
	}
	if err := w.make(ctx, d, t); err != nil {
		return fmt.Errorf("creating %s %s: %w", d.Singular, object.Name(t), err)
	}
	return nil
}

// make creates an object, unless another server of the store has done so.
func (w *wired) make(ctx context.Context, d *resource.Definition, t object.Tree) error {
	target := registry.StorageTarget(d, object.Namespace(t), object.Name(t))
	t["apiVersion"], t["kind"] = d.APIVersion(target.Version.Name), d.Kind
	target.Version.Schema.Default(t)
	t = apply.FieldsOf(d, target.Version, "").Update(ctx, nil, t, apply.Server)
	_, err := w.registry.Create(ctx, target, registry.Given(t), registry.WriteOptions{Manager: apply.Server})
	if status.Is(err, metav1.StatusReasonAlreadyExists) {
		return nil
	}
	return err
}
