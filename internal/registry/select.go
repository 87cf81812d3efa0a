package registry

import (
	"context"
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Selection selects objects of a resource by labels, fields and shard. The zero value selects all.
type Selection struct {
	labels labels.Selector
	fields fields.Selector
	// wanted are the selected fields besides name and namespace.
	wanted []string
	shard  *shard // nil for all objects
}

// Select parses the selectors of a request to version v of d.
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
	usual := d.Dialect.UsualFieldSelectors && len(v.SelectableFields) == 0
	for _, r := range parsed.Requirements() {
		switch {
		case r.Field == "metadata.name", r.Field == "metadata.namespace" && (d.Namespaced || usual) && !d.NoNamespaceLabel:
		case v.SelectableFields[r.Field] != nil:
			s.wanted = append(s.wanted, r.Field)
		case usual:
			return s, status.BadRequest("%q is not a known field selector: only %q, %q", r.Field, "metadata.name", "metadata.namespace")
		case d.LabelError != nil:
			return s, status.BadRequest("%s", d.LabelError(d.APIVersion(v.Name), r.Field))
		default:
			return s, status.BadRequest("field label not supported: %s", r.Field)
		}
	}
	s.fields = parsed
	return s, nil
}

// All reports whether s selects every object.
func (s *Selection) All() bool {
	return s.shard == nil && (s.labels == nil || s.labels.Empty()) && (s.fields == nil || s.fields.Empty())
}

// name returns the only name that s can match, if there is one.
func (s *Selection) name() (string, bool) {
	if s.fields == nil {
		return "", false
	}
	return s.fields.RequiresExactMatch("metadata.name")
}

// scope returns the prefix of the keys of all objects of target that s can match. If one is true, the
// prefix is the key of the only such object.
func (s *Selection) scope(target *Target) (prefix string, one bool) {
	d, namespace := target.Definition, target.Namespace
	if s.fields != nil && d.Namespaced && namespace == "" {
		namespace, _ = s.fields.RequiresExactMatch("metadata.namespace")
	}
	prefix = d.NamespacePrefix(namespace)
	if name, ok := s.name(); ok && name != "" && (namespace != "" || !d.Namespaced) {
		return prefix + name, true
	}
	return prefix, false
}

// matches reports whether an object is selected. value returns the value of a wanted field.
func (s *Selection) matches(o *watchcache.Object, value func(field string) (string, error)) (bool, error) {
	if s.shard != nil && !s.shard.has(o) {
		return false, nil
	}
	if s.labels != nil && !s.labels.Matches(o.Labels()) { // a pointer becomes an interface without an allocation
		return false, nil
	}
	if s.fields == nil {
		return true, nil
	}
	set := fields.Set{"metadata.name": o.Name(), "metadata.namespace": o.Namespace()}
	for _, f := range s.wanted {
		v, err := value(f)
		if err != nil {
			return false, err
		}
		set[f] = v
	}
	return s.fields.Matches(set), nil
}

// valueOf returns the value of a selectable field in the version of the target.
func (r *Registry) valueOf(ctx context.Context, target *Target, o *watchcache.Object, field string) (string, error) {
	t, err := r.Decode(ctx, target.Definition, target.Version, o)
	if err != nil {
		return "", err
	}
	return target.Version.SelectableFields[field](t), nil
}

// minIndexed is the minimum number of objects for an index.
const minIndexed = 256

// indexKey is the key of the index of a selectable field, for conversions since a time.
type indexKey struct {
	viewKey
	field string
	since int64
}

// indexes are the indexes for a selection, by field.
type indexes map[string]*watchcache.Index

func (x indexes) value(field, key string) (string, bool) {
	if one := x[field]; one != nil {
		return one.Value(key)
	}
	return "", false
}

// indexes returns the indexes of a snapshot for s.
func (r *Registry) indexes(ctx context.Context, s *Selection, target *Target, snapshot *watchcache.Snapshot) (indexes, error) {
	found := indexes{}
	since := r.Validity(ctx, target.Definition).Since
	for _, f := range s.wanted {
		x, err := r.cache.Resource(target.Definition.StoragePrefix).Index(ctx, snapshot, watchcache.Indexer{
			Key: indexKey{viewKey{target.Definition.Identity(), target.Version.Name}, f, since},
			Value: func(ctx context.Context, o *watchcache.Object) (string, error) {
				return r.valueOf(ctx, target, o, f)
			},
			Ahead: func(ctx context.Context, objects []*watchcache.Object) {
				// An error comes again from the later look at the object.
				_ = r.Warm(ctx, target.Definition, target.Version, slices.Values(objects))
			},
		})
		if err != nil {
			return nil, StorageError(err)
		}
		found[f] = x
	}
	return found, nil
}

// candidates yields the objects that s may select, in order, as far as indexes and headers tell: those
// of the snapshot with the prefix and after a key.
func (s *Selection) candidates(snapshot *watchcache.Snapshot, found indexes, prefix, after string) iter.Seq[*watchcache.Object] {
	for _, f := range s.wanted {
		if value, ok := s.fields.RequiresExactMatch(f); ok && found[f] != nil {
			return found[f].Scan(value, prefix, after)
		}
	}
	return snapshot.Scan(prefix, after)
}

// selected yields the objects of the snapshot with the prefix and after a key that s selects, in
// order. It yields an error with an object whose fields cannot be read.
func (r *Registry) selected(ctx context.Context, s *Selection, target *Target, snapshot *watchcache.Snapshot, prefix, after string) iter.Seq2[*watchcache.Object, error] {
	return func(yield func(*watchcache.Object, error) bool) {
		var found indexes
		if len(s.wanted) > 0 && snapshot.Len(prefix, after) >= minIndexed {
			var err error
			if found, err = r.indexes(ctx, s, target, snapshot); err != nil {
				yield(nil, err)
				return
			}
		}
		items := s.candidates(snapshot, found, prefix, after)
		if found == nil {
			items = r.ahead(ctx, s, target, items)
		}
		for o := range items {
			if o.Err() != nil {
				if !yield(o, r.corrupt(ctx, o, o.Err())) {
					return
				}
				continue
			}
			ok, err := s.matches(o, func(field string) (string, error) {
				if v, known := found.value(field, o.Key); known {
					return v, nil
				}
				return r.valueOf(ctx, target, o, field)
			})
			if (ok || err != nil) && !yield(o, err) {
				return
			}
		}
	}
}
