package match

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
)

// A Write is a write while somebody is asked about it. It shows the objects in other forms, and
// remembers what had to be found out.
type Write struct {
	*registry.Admission

	namespaces *stored.Lister[corev1.Namespace]
	namespace  *corev1.Namespace
	views      []*View
	ahead      *View // which has changes that the object of the Admission has not
}

// A View is what is written in some form. Neither object is to be changed.
type View struct {
	*Form
	// Object is nil for a deletion, Old for a new object.
	Object, Old object.Tree
}

// NewWrite returns a Write about which nobody was asked yet.
func NewWrite(a *registry.Admission, namespaces *stored.Lister[corev1.Namespace]) *Write {
	return &Write{Admission: a, namespaces: namespaces}
}

// InNamespace returns the namespace that the write is in. What is about a Namespace is in that.
// It is "" for other resources of the cluster.
func (w *Write) InNamespace() string {
	if w.Target.Definition.Plural == "namespaces" && w.Target.Definition.Group == "" {
		return w.Target.Name
	}
	return w.Target.Namespace
}

// Namespace returns the namespace that the write is in, as it is stored.
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

// inNamespace reports whether a selector selects the namespace. What is in none is selected.
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
		return s.Matches(labelsOf(w.shown())), nil // those that it is about to have
	}
	namespace, err := w.Namespace(ctx)
	if err != nil {
		return false, err
	}
	return s.Matches(labels.Set(namespace.Labels)), nil
}

// selected reports whether a selector selects what is written or what is replaced.
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

// selects reports whether the selector selects an object. What has no metadata is never selected.
func (s selector) selects(t object.Tree) bool {
	return t["metadata"] != nil && s.Matches(labelsOf(t))
}

// shown is what is written, with what was changed in any form.
func (w *Write) shown() object.Tree {
	if w.ahead != nil {
		return w.ahead.Object
	}
	return w.Object
}

// labelsOf returns the labels of an object.
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

// View returns what is written in a form. It is converted once for each.
func (w *Write) View(ctx context.Context, f *Form) (*View, error) {
	for _, v := range w.views {
		if v.Kind == f.Kind && v.Resource == f.Resource {
			return v, nil
		}
	}
	if err := w.Settle(ctx); err != nil {
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

// show returns an object in the form.
func (f *Form) show(ctx context.Context, t object.Tree) (object.Tree, error) {
	if t == nil || f.fixed || f.Definition.IsAPIVersion(object.APIVersion(t), f.Kind.Version) {
		return t, nil
	}
	return registry.Convert(ctx, f.Definition, f.Version, object.CloneTree(t))
}

// Change makes changed what is written in the form of v, which is the only form that is known then.
func (w *Write) Change(v *View, changed object.Tree) {
	v.Object = changed
	w.views, w.ahead = []*View{v}, v
	w.Changed = true
}

// Settle brings what was changed in some form into that of the write.
func (w *Write) Settle(ctx context.Context) error {
	if w.ahead == nil {
		return nil
	}
	v := w.ahead
	t := v.Object
	if to := Asked(w.Admission); to.Kind != v.Kind {
		var err error
		if t, err = to.show(ctx, t); err != nil {
			return err
		}
	}
	w.Object, w.ahead = t, nil
	return nil
}
