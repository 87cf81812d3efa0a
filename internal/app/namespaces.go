package app

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/apply"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
)

// serverManager is who the server says it is in the managedFields of what it makes.
const serverManager = "kube-apiserver"

// ensureNamespaces creates the namespaces that always exist, at once, so that
// one write to disk is enough for all.
func (w *wired) ensureNamespaces(ctx context.Context, d *resource.Definition) error {
	names := builtin.SystemNamespaces()
	errs := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { errs[i] = w.ensureNamespace(ctx, d, name) })
	}
	group.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("creating namespace %s: %w", names[i], err)
		}
	}
	return nil
}

func (w *wired) ensureNamespace(ctx context.Context, d *resource.Definition, name string) error {
	target := registry.StorageTarget(d, "", name)
	_, err := w.registry.Get(ctx, target, "")
	if !status.Is(err, metav1.StatusReasonNotFound) {
		return err
	}
	t := object.Tree{
		"apiVersion": d.APIVersion(target.Version.Name),
		"kind":       d.Kind,
		"metadata":   object.Tree{"name": name},
	}
	target.Version.Schema.Default(t)
	t = apply.FieldsOf(d, target.Version, "").Update(nil, t, serverManager)
	_, err = w.registry.Create(ctx, target, registry.Given(t), registry.WriteOptions{})
	if status.Is(err, metav1.StatusReasonAlreadyExists) {
		return nil // created by another server of the same store
	}
	return err
}
