package registry

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// viewKey is the key of an object's form in a version of a Definition.
type viewKey struct {
	of      any // the identity of the Definition
	version string
}

// asStored reports whether v shows the stored bytes. With conversion, objects may be stored in another
// version than the storage version: an earlier one, or one of another group.
func asStored(d *resource.Definition, v *resource.Version, o *watchcache.Object) bool {
	return v.Storage && !d.CheckOnRead && o.Revision > d.CompleteSince && (d.Convert == nil || o.APIVersion() == d.APIVersion(v.Name))
}

// shows reports whether v shows the stored bytes, except for the apiVersion.
func shows(d *resource.Definition, v *resource.Version, o *watchcache.Object) bool {
	if d.Convert != nil || v.Storage {
		return asStored(d, v, o)
	}
	return !d.CheckOnRead && o.Revision > d.CompleteSince && v.Alike(d.StorageVersion())
}

// converts reports whether v needs a conversion of o.
func converts(d *resource.Definition, v *resource.Version, o *watchcache.Object) bool {
	return d.Convert != nil && o.APIVersion() != d.APIVersion(v.Name)
}

// View returns o in version v of d, except for the apiVersion: it may be that of another version with
// the same form, and the encoder of the response sets it. Bytes stored in that form are not parsed.
// Others are converted once, or once for each validity of a conversion.
func (r *Registry) View(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Encoded, error) {
	e, err := r.read(ctx, o)
	if err != nil {
		return object.Encoded{}, err
	}
	if shows(d, v, o) {
		return *e, nil
	}
	var validity watchcache.Validity
	if converts(d, v, o) {
		validity = r.Validity(ctx, d)
	}
	data, err := o.Memo(viewKey{d.Identity(), v.Name}, validity, func() ([]byte, error) {
		t, err := r.parse(ctx, o, e.JSON)
		if err != nil {
			return nil, err
		}
		refresh(d, t, o.Revision)
		// Other requests wait for this result, even if this one is canceled.
		if t, err = Convert(context.WithoutCancel(ctx), d, v, t); err != nil {
			return nil, unconverted(err)
		}
		return encodeAs(t, e.JSON), nil
	})
	switch {
	case err != nil:
		return object.Encoded{}, err
	case same(data, e.JSON):
		return *e, nil
	}
	return object.Scan(data, o.Revision)
}

// Check returns the error of View as far as it is known without loading an object.
func (r *Registry) Check(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) error {
	switch {
	case o.Err() != nil:
		return r.corrupt(ctx, o, o.Err())
	case shows(d, v, o):
		return nil
	}
	_, err := r.View(ctx, d, v, o)
	return err
}

// read returns the value of an object.
func (r *Registry) read(ctx context.Context, o *watchcache.Object) (*object.Encoded, error) {
	e, err := o.Read()
	if err == nil {
		return e, nil
	}
	if known := StorageError(err); known != err {
		return nil, known
	}
	return nil, r.corrupt(ctx, o, err)
}

// encodeAs is encode for an object whose bytes may be as they were, and then are the result.
func encodeAs(t object.Tree, was []byte) []byte {
	if data := encode(t); !bytes.Equal(data, was) {
		return data
	}
	return was
}

// same reports whether two slices share their array.
func same(a, b []byte) bool { return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0] }

// Decode returns o in version v of d, for callers that change it. It has a resourceVersion. A
// conversion is that of View.
func (r *Registry) Decode(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Tree, error) {
	e, err := r.read(ctx, o)
	if err != nil {
		return nil, err
	}
	data, shown := e.JSON, asStored(d, v, o)
	if converts(d, v, o) {
		view, err := r.View(ctx, d, v, o)
		if err != nil {
			return nil, err
		}
		data, shown = view.JSON, true
	}
	t, err := r.parse(ctx, o, data)
	if err != nil {
		return nil, err
	}
	switch {
	case shown:
	case shows(d, v, o):
		t["apiVersion"] = d.APIVersion(v.Name)
	default:
		refresh(d, t, o.Revision)
		show(d, v, t)
	}
	setRevision(t, o.Revision)
	return t, nil
}

// parse parses data, a form of o.
func (r *Registry) parse(ctx context.Context, o *watchcache.Object, data []byte) (object.Tree, error) {
	t, _, err := codec.Decode(codec.JSON, data)
	if err == nil && t == nil {
		err = errors.New("it is null")
	}
	if err != nil {
		return nil, r.corrupt(ctx, o, err)
	}
	return t, nil
}

// unconverted returns the error of a read whose conversion failed.
func unconverted(err error) error {
	var known *status.Error
	if errors.As(err, &known) {
		return err
	}
	return status.Internal(err)
}

// refresh updates t, stored at a revision, to the present schema of its own version: it drops unknown
// fields and sets defaults. Objects stored under d have that form already, unless it is unsettled.
func refresh(d *resource.Definition, t object.Tree, revision int64) {
	apiVersion := object.APIVersion(t)
	for _, own := range d.Versions {
		if d.IsAPIVersion(apiVersion, own.Name) && (d.CheckOnRead || !own.Storage || revision <= d.CompleteSince) {
			own.Schema.Prune(t)
			own.Schema.Default(t)
			if d.HasGeneration && !d.Dialect.ReadsGenerations && object.Generation(t) == 0 {
				object.SetGeneration(t, 1) // it was stored before generations existed
			}
		}
	}
}

// Convert converts t, which it may change, from its own version to version v of d, which may be
// another resource that stores the same objects.
func Convert(ctx context.Context, d *resource.Definition, v *resource.Version, t object.Tree) (object.Tree, error) {
	if d.Convert != nil && object.APIVersion(t) != d.APIVersion(v.Name) {
		out, err := d.Convert(ctx, []map[string]any{t}, v.Name)
		if err != nil {
			return nil, err
		}
		t = out[0]
	}
	show(d, v, t)
	return t, nil
}

// show converts t to version v in place; the versions differ only in their schemas. t has the defaults
// of its stored version, not those of v, as in Kubernetes.
func show(d *resource.Definition, v *resource.Version, t object.Tree) {
	t["apiVersion"] = d.APIVersion(v.Name)
	v.Schema.Prune(t)
}

// stored returns the bytes to store for t, an object in version v, the view of them for a client of v,
// and whether the two are equal.
func stored(ctx context.Context, d *resource.Definition, v *resource.Version, t object.Tree) (data []byte, shown object.Tree, same bool, err error) {
	if v.Storage {
		return encode(t), t, true, nil
	}
	s := object.CloneTree(t)
	object.SetMetaString(s, "resourceVersion", "")
	if s, err = Convert(ctx, d, d.StorageVersion(), s); err != nil {
		return nil, nil, false, unstorable(t, err)
	}
	data = encode(s)
	// The client's view is converted back, as a read will do: it has the defaults of the storage
	// version, which are not stored.
	d.StorageVersion().Schema.Default(s)
	if s, err = Convert(ctx, d, v, s); err != nil {
		return nil, nil, false, err
	}
	object.SetMetaString(s, "resourceVersion", object.ResourceVersion(t))
	return data, s, false, nil
}

// unstorable returns the error for a new object that cannot be converted. It names the field if the
// conversion does.
func unstorable(t object.Tree, err error) error {
	var at *field.Error
	if errors.As(err, &at) {
		return invalidType(t, field.ErrorList{at})
	}
	return err
}

// storedIn returns the stored version of an object, if it is known and versions differ by more than
// their schema, and otherwise v. The server's own changes to an object use that version: they need no
// conversion, and work while the webhook fails.
func storedIn(d *resource.Definition, v *resource.Version, o *watchcache.Object) *resource.Version {
	if d.Convert == nil || o.Err() != nil {
		return v
	}
	apiVersion := o.APIVersion()
	for _, known := range d.Versions {
		if d.IsAPIVersion(apiVersion, known.Name) {
			return known
		}
	}
	return v
}

// encode returns the JSON of t without its resourceVersion.
func encode(t object.Tree) []byte {
	metadata := object.Metadata(t)
	if revision, ok := metadata["resourceVersion"]; ok {
		delete(metadata, "resourceVersion")
		defer func() { metadata["resourceVersion"] = revision }()
	}
	scratch := scratches.Get().(*[]byte)
	*scratch = object.AppendJSON((*scratch)[:0], t)
	data := bytes.Clone(*scratch) // a copy of exact length, because it is kept
	if cap(*scratch) <= maxScratch {
		scratches.Put(scratch)
	}
	return data
}

// scratches are buffers for encoding objects of unknown length.
var scratches = sync.Pool{New: func() any { return new([]byte) }}

// maxScratch limits the size of a buffer in the pool.
const maxScratch = 64 << 10

func setRevision(t object.Tree, revision int64) {
	object.SetMetaString(t, "resourceVersion", strconv.FormatInt(revision, 10))
}
