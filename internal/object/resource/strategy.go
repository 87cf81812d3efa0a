package resource

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/gate"
)

// A Strategy has the hooks of a kind for writes. They are listed in the order of their calls; all
// may be nil.
type Strategy struct {
	// AllowCreateOnUpdate lets a PUT create a missing object.
	AllowCreateOnUpdate bool
	// AllowUnconditionalUpdate allows a PUT without resourceVersion.
	AllowUnconditionalUpdate bool

	// GracePeriod returns the seconds between the request for a deletion and the removal of the
	// object. asked is that of the client, nil for none. Nil for a kind without grace periods.
	GracePeriod func(obj map[string]any, requested *int64) int64
	// OrphansDependents: by default, a deletion leaves the dependents of the object.
	OrphansDependents bool
	// OrphanWarning is the warning of a deletion without a propagation policy, which leaves
	// dependents.
	OrphanWarning string

	// PreconditionFailed is the prefix of the error if a precondition of a deletion fails and the
	// kind, rather than the store, checks it; "" for most kinds.
	PreconditionFailed string

	// BeforeDelete changes an object at the first request for its deletion: it may add a
	// finalizer, or set a phase. The object has its deletionTimestamp; other metadata, such as
	// the finalizers of propagation policies and a generation, is left to the kind.
	BeforeDelete func(ctx context.Context, c *Change, options *metav1.DeleteOptions)

	// Authorize returns an error if the user may write objects of the kind but not this one. It
	// is called for a write of the resource itself, before all other hooks. The error is a
	// Status.
	Authorize func(ctx context.Context, c *Change) error
	// Allocate gives an object a unique resource: an address, a port. It is called for a write of
	// the resource itself, before the object is completed otherwise. A Mark from Resolve stores
	// the allocation. The error is a Status.
	Allocate func(ctx context.Context, c *Change) error
	// Prepare completes an object, in the storage version, before validation.
	Prepare func(ctx context.Context, c *Change)
	// ValidateName returns the errors of a name, or of the prefix of a generated one. Nil
	// requires a DNS subdomain.
	ValidateName func(name string, prefix bool) []string
	// ValidatesMetadataLast: the metadata of a new object is validated only if the rest of the
	// object is valid.
	ValidatesMetadataLast bool
	// Validate returns errors that the schema cannot find.
	Validate func(ctx context.Context, c *Change) field.ErrorList
	// Warn returns warnings about a valid object.
	Warn func(ctx context.Context, c *Change) []string
	// Canonicalize brings a valid object into its stored form.
	Canonicalize func(obj map[string]any)

	// Begin is called before Resolve, and its result after the commit or its failure, for kinds
	// whose objects are resolved one at a time.
	Begin func(ctx context.Context) (end func(), err error)
	// Resolve derives parts of an object from other objects, before a write or a deletion. It may
	// replace top-level fields. It is called again, with the original object, if one of its Marks
	// has moved before the commit. ErrTaken repeats the allocation.
	Resolve func(ctx context.Context, c *Change) ([]Mark, error)
	// HasFinalizers reports whether a deleted object waits for finalizers other than those in its
	// metadata.
	HasFinalizers func(obj map[string]any) bool
	// Wrote is called after a write of the resource or a subresource that changed the stored
	// object. It must not change the object.
	Wrote func(c *Change)
	// Committed returns once the server serves the effects of a write at revision.
	Committed func(ctx context.Context, revision int64) error
}

// A Change is a write as hooks see it. Its user is in the context: request.UserFrom.
type Change struct {
	// Object is the new object. Hooks that may change it do so in place.
	Object map[string]any
	// Old is the object that it replaces; nil on create. It must not be changed.
	Old map[string]any
	// Namespace and Name are those in the request. On create, Name is empty if the server
	// generates it.
	Namespace, Name string
	// Subresource that is written, or "".
	Subresource string
	// Version is the name of the client's version.
	Version string
	// Gates are the feature gates of the server.
	Gates *gate.Set
	// DryRun: nothing is stored, so hooks must have no other side effects.
	DryRun bool
	// Typed is shared by consecutive hooks of a kind: the objects as Go values.
	Typed any
	// Objects has all stored objects. It is set for a Creater, and for Validate, which only
	// reads.
	Objects Objects
}

// Changing adapts a function of the objects alone to a hook.
func Changing(change func(obj, old map[string]any)) func(context.Context, *Change) {
	return func(_ context.Context, c *Change) { change(c.Object, c.Old) }
}

// Looking adapts a function that changes nothing and returns a result.
func Looking[T any](look func(obj, old map[string]any) T) func(context.Context, *Change) T {
	return func(_ context.Context, c *Change) T { return look(c.Object, c.Old) }
}

// ErrTaken is the error of a write whose allocated values another object has. The write
// begins again with its first phase.
var ErrTaken = errors.New("an allocated value is taken by another object")

// A Mark is a key besides that of the object, through which conflicting writes notice each other.
// A write is committed only if its Marks have not moved since it was resolved. A Mark is an
// internal key, or an object that is created and deleted with the written one.
type Mark struct {
	Key      string
	Revision int64 // 0 if the key is missing
	// Moves: the write changes the state that others depend on. It then writes Value at Key, or
	// deletes Key if Value is nil.
	Moves bool
	Value []byte
}
