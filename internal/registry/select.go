package registry

import (
	"context"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
	"github.com/anykind/anykind/internal/watchcache"
)

// A Selection says which objects of a resource a client wants. The zero value
// selects all.
type Selection struct {
	labels labels.Selector
	fields fields.Selector
	// wanted are the fields besides name and namespace that fields asks for.
	wanted []string
}

// Select reads the selectors of a request to version v of d.
func Select(d *resource.Definition, v *resource.Version, labelSelector, fieldSelector string) (Selection, error) {
	var s Selection
	if labelSelector != "" {
		parsed, err := labels.Parse(labelSelector)
		if err != nil {
			return s, status.BadRequest("%v", err)
		}
		s.labels = parsed
	}
	if fieldSelector == "" {
		return s, nil
	}
	parsed, err := fields.ParseSelector(fieldSelector)
	if err != nil {
		return s, status.BadRequest("%v", err)
	}
	for _, r := range parsed.Requirements() {
		switch {
		case r.Field == "metadata.name", r.Field == "metadata.namespace" && d.Namespaced:
		case v.SelectableFields[r.Field] != nil:
			s.wanted = append(s.wanted, r.Field)
		case v.New != nil && len(v.SelectableFields) == 0: // a built-in kind that says nothing of its own
			return s, status.BadRequest("%q is not a known field selector: only %q, %q", r.Field, "metadata.name", "metadata.namespace")
		default:
			return s, status.BadRequest("field label not supported: %s", r.Field)
		}
	}
	s.fields = parsed
	return s, nil
}

// All reports whether s selects every object.
func (s *Selection) All() bool {
	return (s.labels == nil || s.labels.Empty()) && (s.fields == nil || s.fields.Empty())
}

// name returns the one name that s can match, if it is of that sort.
func (s *Selection) name() (string, bool) {
	if s.fields == nil {
		return "", false
	}
	return s.fields.RequiresExactMatch("metadata.name")
}

// matches reports whether an object is selected.
func (r *Registry) matches(ctx context.Context, s *Selection, target *Target, o *watchcache.Object) (bool, error) {
	if s.labels != nil && !s.labels.Matches(o.Labels) {
		return false, nil
	}
	if s.fields == nil {
		return true, nil
	}
	set := fields.Set{"metadata.name": o.Name, "metadata.namespace": o.Namespace}
	if len(s.wanted) > 0 {
		t, err := r.Decode(ctx, target.Definition, target.Version, o)
		if err != nil {
			return false, err
		}
		for _, f := range s.wanted {
			set[f] = target.Version.SelectableFields[f](t)
		}
	}
	return s.fields.Matches(set), nil
}
