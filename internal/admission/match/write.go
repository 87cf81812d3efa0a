package match

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celpolicy"
	"github.com/anykind/anykind/internal/store/stored"
)

// A Write is a write during calls of webhooks or policies. It converts the objects to other forms,
// and caches the results.
type Write struct {
	*registry.Admission

	namespaces *stored.Lister[corev1.Namespace]
	namespace  *corev1.Namespace
	views      []*View
	ahead      *View // has changes that Admission.Object lacks
}

// A View is a write in one form. Callers must not change its objects.
type View struct {
	*Form
	// Object is nil for deletions, Old is nil for creates.
	Object, Old object.Tree
	// Common is for the expressions about the write.
	Common celpolicy.Common
}

// NewWrite returns the Write of an Admission.
func NewWrite(a *registry.Admission, namespaces *stored.Lister[corev1.Namespace]) *Write {
	return &Write{Admission: a, namespaces: namespaces}
}

// InNamespace returns the namespace of the write. A Namespace is in itself. Other cluster-scoped
// resources return "".
func (w *Write) InNamespace() string {
	if w.Target.Definition.Plural == "namespaces" && w.Target.Definition.Group == "" {
		return w.Target.Name
	}
	return w.Target.Namespace
}

// Namespace returns the stored namespace of the write.
func (w *Write) Namespace(ctx context.Context) (*corev1.Namespace, error) {
	if w.namespace != nil {
		return w.namespace, nil
	}
	name := w.InNamespace()
	found, err := w.namespaces.Get(ctx, "", name)
	if err == nil && found == nil {
		err = status.NotFound(corev1.Resource("namespaces"), name)
	}
	if err != nil {
		return nil, err
	}
	w.namespace = found
	return found, nil
}

// inNamespace reports whether a selector selects the namespace. It selects every object without a
// namespace.
func (w *Write) inNamespace(ctx context.Context, s selector) (bool, error) {
	if s.all() {
		return true, nil
	}
	isNamespace := w.Target.Definition.Plural == "namespaces"
	if w.InNamespace() == "" && !isNamespace {
		return true, nil
	}
	if s.err != nil {
		return false, s.broken()
	}
	if isNamespace && w.Target.Subresource == "" && (w.Operation == registry.Create || w.Operation == registry.Update) {
		return s.Matches(labelsOf(w.shown())), nil // the new labels
	}
	namespace, err := w.Namespace(ctx)
	if err != nil {
		return false, err
	}
	return s.Matches(labels.Set(namespace.Labels)), nil
}

// selected reports whether a selector selects the new object or the old one.
func (w *Write) selected(ctx context.Context, s selector) (bool, error) {
	switch {
	case s.all():
		return true, nil
	case s.err != nil:
		return false, s.broken()
	case s.selects(w.shown()):
		return true, nil
	}
	old, err := w.Old(ctx)
	return err == nil && s.selects(old), err
}

// selects reports whether the selector selects an object. An object without metadata is never
// selected.
func (s selector) selects(t object.Tree) bool {
	return t["metadata"] != nil && s.Matches(labelsOf(t))
}

// shown returns the new object, with the changes of any form.
func (w *Write) shown() object.Tree {
	if w.ahead != nil {
		return w.ahead.Object
	}
	return w.Object
}

func labelsOf(t object.Tree) labels.Set {
	metadata, _ := t["metadata"].(map[string]any)
	all, _ := metadata["labels"].(map[string]any)
	set := make(labels.Set, len(all))
	for key, value := range all {
		if text, ok := value.(string); ok {
			set[key] = text
		}
	}
	return set
}

// View returns the write in a form. It converts the objects once for each form.
func (w *Write) View(ctx context.Context, f *Form) (*View, error) {
	for _, v := range w.views {
		if v.Kind == f.Kind && v.Resource == f.Resource {
			return v, nil
		}
	}
	if err := w.ConvertBack(ctx); err != nil {
		return nil, err
	}
	old, err := w.Old(ctx)
	if err != nil {
		return nil, err
	}
	v := &View{Form: f}
	if v.Object, err = f.show(ctx, w.Object); err != nil {
		return nil, err
	}
	if v.Old, err = f.show(ctx, old); err != nil {
		return nil, err
	}
	w.views = append(w.views, v)
	return v, nil
}

// show converts an object to the form.
func (f *Form) show(ctx context.Context, t object.Tree) (object.Tree, error) {
	if t == nil || f.fixed || f.Definition.IsAPIVersion(object.APIVersion(t), f.Kind.Version) {
		return t, nil
	}
	return registry.Convert(ctx, f.Definition, f.Version, object.CloneTree(t))
}

// Change replaces the object of the write by changed, which is in the form of v. Views in other
// forms are dropped.
func (w *Write) Change(v *View, changed object.Tree) {
	v.Object = changed
	w.views, w.ahead = []*View{v}, v
	w.Changed = true
}

// ConvertBack converts the last change back to the form of the request.
func (w *Write) ConvertBack(ctx context.Context) error {
	if w.ahead == nil {
		return nil
	}
	v := w.ahead
	t := v.Object
	if to := RequestForm(w.Admission); to.Kind != v.Kind {
		var err error
		if t, err = to.show(ctx, t); err != nil {
			return err
		}
	}
	w.Object, w.ahead = t, nil
	return nil
}
