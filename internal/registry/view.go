package registry

import (
	"context"
	"fmt"
	"strconv"

	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
	"github.com/anykind/anykind/internal/watchcache"
)

// viewKey names the form in which a version of a Definition shows an object.
type viewKey struct {
	definition *resource.Definition
	version    string
}

// asStored reports whether what is stored is what v shows. What can be converted
// may be stored in another form than the storage version's: an earlier one's, or
// that of another group.
func asStored(d *resource.Definition, v *resource.Version, o *watchcache.Object) bool {
	return v.Storage && o.Revision > d.Since && (d.Convert == nil || o.APIVersion() == d.APIVersion(v.Name))
}

// View returns o as version v of d shows it. What is stored in that form
// already is not parsed, and what is not is brought into it once.
func (r *Registry) View(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Encoded, error) {
	if o.Err != nil {
		return object.Encoded{}, unreadable(o)
	}
	if asStored(d, v, o) {
		return o.Encoded, nil
	}
	data, err := o.Memo(viewKey{d, v.Name}, func() ([]byte, error) {
		// Others wait for this too, whatever becomes of the request.
		t, err := r.Decode(context.WithoutCancel(ctx), d, v, o)
		if err != nil {
			return nil, err
		}
		return encode(t), nil
	})
	if err != nil {
		return object.Encoded{}, err
	}
	return object.Scan(data, o.Revision)
}

// Decode returns o as version v of d shows it, for someone who will change it.
// It has a resourceVersion.
func (r *Registry) Decode(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Tree, error) {
	if o.Err != nil {
		return nil, unreadable(o)
	}
	t := object.Tree{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.JSON, &t); err != nil {
		return nil, status.Internal(fmt.Errorf("the stored object %s cannot be decoded: %w", o.Key, err))
	}
	if !asStored(d, v, o) {
		var err error
		if t, err = convert(ctx, d, v, t); err != nil {
			return nil, err
		}
	}
	setRevision(t, o.Revision)
	return t, nil
}

func unreadable(o *watchcache.Object) error {
	return status.Internal(fmt.Errorf("the stored object %s cannot be decoded: %w", o.Key, o.Err))
}

// convert brings t, which it may change, into the form of version v: the
// version's apiVersion, its fields, its defaults.
func convert(ctx context.Context, d *resource.Definition, v *resource.Version, t object.Tree) (object.Tree, error) {
	if d.Convert != nil && object.APIVersion(t) != d.APIVersion(v.Name) {
		var err error
		if t, err = d.Convert(ctx, t, v.Name); err != nil {
			return nil, err
		}
	}
	t["apiVersion"] = d.APIVersion(v.Name)
	v.Schema.Prune(t)
	v.Schema.Default(t)
	return t, nil
}

// stored returns what is to be stored for t, an object in version v, and
// whether it is t itself.
func stored(ctx context.Context, d *resource.Definition, v *resource.Version, t object.Tree) ([]byte, bool, error) {
	if v.Storage {
		return encode(t), true, nil
	}
	s, err := convert(ctx, d, d.StorageVersion(), object.CloneTree(t))
	if err != nil {
		return nil, false, err
	}
	return encode(s), false, nil
}

// encode returns the JSON of t without its resourceVersion.
func encode(t object.Tree) []byte {
	metadata := object.Metadata(t)
	if revision, ok := metadata["resourceVersion"]; ok {
		delete(metadata, "resourceVersion")
		defer func() { metadata["resourceVersion"] = revision }()
	}
	return object.AppendJSON(make([]byte, 0, 1024), t)
}

func setRevision(t object.Tree, revision int64) {
	object.SetMetaString(t, "resourceVersion", strconv.FormatInt(revision, 10))
}
