package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/span"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// ErrStale says that what a write relied on has changed meanwhile: the
// Definition it was prepared with, the namespace it goes to. The request is to
// be made again from its beginning.
var ErrStale = errors.New("a precondition of the write has changed")

// errConflict is the error of a write to a key that has changed meanwhile.
var errConflict = errors.New("the object was written by someone else")

// Registry gives access to all objects.
type Registry struct {
	backend   kv.Backend
	former    kv.Former    // the backend; nil if it has one form for all values
	historian kv.Historian // the backend; nil if it keeps no history
	differ    kv.Differ    // the backend; nil if it begins with no state of another one
	cache     *watchcache.Cache
	plugins   Plugins
	source    func(*resource.Definition) (kv.Guard, bool) // nil for none
	gates     *gate.Set
	now       func() time.Time
	log       *slog.Logger
	objects   resource.Objects // for the kinds
}

// Options of a Registry. The zero value works.
type Options struct {
	// Plugins are called for every write.
	Plugins Plugins
	// Source returns a guard for the object that a Definition comes from. A write fails if that object has
	// changed. A Definition without one never changes. Nil is for such Definitions only.
	Source func(*resource.Definition) (guard kv.Guard, ok bool)
	// Gates are the feature gates of the server.
	Gates  *gate.Set
	Now    func() time.Time
	Logger *slog.Logger
}

// New returns a Registry that reads from cache and writes to backend.
func New(backend kv.Backend, cache *watchcache.Cache, o Options) *Registry {
	r := &Registry{backend: backend, cache: cache, plugins: o.Plugins, source: o.Source, gates: o.Gates, now: o.Now, log: o.Logger}
	r.former, _ = kv.As[kv.Former](backend)
	r.historian, _ = kv.As[kv.Historian](backend)
	r.differ, _ = kv.As[kv.Differ](backend)
	if r.now == nil {
		r.now = time.Now
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	unasking := *r
	unasking.plugins = Plugins{}
	r.objects = objects{&unasking}
	unasking.objects = r.objects
	return r
}

// A Target is the target of a request: a resource in the version of the client, and often the name of
// an object.
type Target struct {
	Definition  *resource.Definition
	Version     *resource.Version
	Namespace   string
	Name        string
	Subresource string
}

// StorageTarget names an object in its storage version.
func StorageTarget(d *resource.Definition, namespace, name string) Target {
	return Target{Definition: d, Version: d.StorageVersion(), Namespace: namespace, Name: name}
}

func (t *Target) key() string { return t.Definition.Key(t.Namespace, t.Name) }

// checkName rejects a name that is not one segment of a path, so that no object can have it.
func (t *Target) checkName() error {
	if problems := object.ValidatePathSegment(t.Name, false); len(problems) > 0 {
		return status.BadRequest("Name parameter invalid: %q: %s", t.Name, strings.Join(problems, ";"))
	}
	return nil
}

// Match checks that the object of a request is the target of its path, and sets its namespace to that
// of the request.
func (t *Target) Match(obj object.Tree) error {
	if err := matchNamespace(t, obj); err != nil {
		return err
	}
	return matchName(t, obj)
}

func (t *Target) notFound() error {
	return status.NotFound(t.Definition.GroupResource(), t.Name)
}

func (t *Target) invalid(name string, errs field.ErrorList) error {
	return status.Invalid(t.Definition.ErrorKind(), name, errs)
}

// WriteOptions are the options of a write.
type WriteOptions struct {
	// DryRun runs all phases and stores nothing.
	DryRun bool
	// CreateMissing lets Modify create a missing object, even if the kind forbids that for updates.
	CreateMissing bool
	// Applied marks a server-side apply. Its result can have nulls.
	Applied bool
	// AsStored lets Modify and Delete use the stored version of an object in place of the Target's, so
	// that no conversion is needed.
	AsStored bool
	// Warn sends a warning to the client. It may be nil.
	Warn func(message string)
	// Fits returns an error if the response cannot show the result. Then nothing is stored. It may be
	// nil.
	Fits func() error
	// Guards are conditions on other keys for any write of the server.
	Guards []kv.Guard
	// FieldManager and FieldValidation are the options of the client, for admission.
	FieldManager, FieldValidation string
	// Manager is the field manager of the write, for its Note; "" is the FieldManager or the default one.
	Manager string
	// collected is true for a deletion of a collection: admission sees no name.
	collected bool

	// Complete prunes and defaults the object of a client. It is nil for objects of the server, which
	// stay unchanged.
	Complete func(t object.Tree) (object.Tree, error)
	// Account records the managers of the changes from old in t. If it is nil, the Change has done so.
	Account func(ctx context.Context, old, t object.Tree) object.Tree
}

func (o *WriteOptions) fits() error {
	if o.Fits == nil {
		return nil
	}
	return o.Fits()
}

func (o *WriteOptions) warn(messages ...string) {
	if o.Warn == nil {
		return
	}
	for _, m := range messages {
		o.Warn(m)
	}
}

// A Result is the result of a write.
type Result struct {
	// Tree is the object in the version of the Target, with its resourceVersion. It is read-only.
	Tree object.Tree
	// Stored is the stored object if the Target's version shows the stored bytes, and otherwise empty.
	Stored object.Encoded
	// Revision of the write, or 0 if nothing was written.
	Revision int64
	// Created is true if the object did not exist before.
	Created bool
}

// A staleError is ErrStale for a key.
type staleError struct{ key string }

func (e *staleError) Error() string { return ErrStale.Error() }
func (e *staleError) Unwrap() error { return ErrStale }

// commit commits one write. It returns errConflict if the key has another revision than expected, and
// ErrStale if a guard does not hold.
func (r *Registry) commit(ctx context.Context, d *resource.Definition, w kv.Write) (int64, error) {
	if r.source != nil {
		if guard, ok := r.source(d); ok {
			w.Guards = append(w.Guards, guard)
		}
	}
	ctx, s := span.Start(ctx, "Commit")
	if s.IsRecording() {
		s.SetAttributes(attribute.String("key", w.Key), attribute.String("resource", d.GroupResource().String()))
	}
	revision, err := r.backend.Commit(ctx, w)
	span.End(s, err)
	if err == nil {
		if d.Committed != nil {
			err = d.Committed(ctx, revision)
		}
		return revision, err
	}
	var conflict *kv.ConflictError
	switch {
	case !errors.As(err, &conflict):
		return 0, StorageError(err)
	case conflict.Key == w.Key:
		return 0, errConflict
	}
	// A retry must see the change.
	if _, err := r.cache.Fresh(ctx); err != nil {
		return 0, StorageError(err)
	}
	return 0, &staleError{conflict.Key}
}

// StorageError converts an error of the store for the client.
func StorageError(err error) error {
	if err == nil { // the usual case allocates nothing
		return nil
	}
	var (
		compacted *kv.CompactedError
		future    *kv.FutureError
		large     *kv.TooLargeError
		unencoded *kv.EncodeError
	)
	switch {
	case errors.As(err, &compacted):
		return status.Expired("The resourceVersion for the provided list is too old.")
	case errors.As(err, &future):
		return status.FutureRevision(future.Asked, future.Newest, 1)
	case errors.As(err, &large) && large.Limit == 0:
		return status.TooLarge(fmt.Sprintf("the object has %d bytes as it is stored, which is more than etcd takes; its --max-request-bytes raises that", large.Size))
	case errors.As(err, &large):
		return status.TooLarge(fmt.Sprintf("the object has %d bytes as it is stored, the limit is %d; --max-object-bytes raises it", large.Size, large.Limit))
	case errors.As(err, &unencoded):
		return status.Internal(err)
	case errors.Is(err, kv.ErrFull):
		return status.Unavailable("the server has no space left to store the object; free space on the disk of its data directory and try again")
	case errors.Is(err, kv.ErrClosed), errors.Is(err, watchcache.ErrStopped):
		return status.Unavailable("the server is shutting down")
	case errors.Is(err, kv.ErrUnavailable):
		return status.Unavailable("the server cannot reach its storage; try again")
	case errors.Is(err, kv.ErrUncertain):
		return status.Timeout("the server does not know whether the write was stored", 1)
	default:
		return err
	}
}
