package resource

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A Strategy is what a kind does with an object on its way to storage. Its hooks are in
// the order in which they are called; all may be nil.
type Strategy struct {
	// AllowCreateOnUpdate lets a PUT create what does not exist.
	AllowCreateOnUpdate bool
	// AllowUnconditionalUpdate lets a PUT without resourceVersion replace
	// whatever is there.
	AllowUnconditionalUpdate bool

	// GracePeriod returns how many seconds an object that is to be deleted has to end
	// before it is removed. Asked is what the client says, nil for nothing. Nil is for a
	// kind whose objects are not given any time.
	GracePeriod func(obj map[string]any, asked *int64) int64
	// OrphansDependents says that a deletion leaves those alone who name the object as
	// their owner, if the client asks for nothing else.
	OrphansDependents bool
	// OrphanWarning is for clients whose deletion says nothing of dependents, which stay.
	OrphanWarning string

	// PreconditionFailed is what the answer begins with if a precondition of a deletion does not
	// hold and the kind, and not the store, looks at it; "" for most.
	PreconditionFailed string

	// BeforeDelete marks an object whose deletion is asked for for the first
	// time: a finalizer that must run, a phase to show. The object has its
	// deletionTimestamp; what is otherwise recorded in its metadata (what becomes
	// of its dependents, a generation) is left to the kind.
	BeforeDelete func(ctx context.Context, c *Change, options *metav1.DeleteOptions)

	// Authorize returns why whoever asks may not write what they want, although they may write
	// objects of the kind. It is called for a write of the resource itself, before anything
	// else looks at the object. The error is a Status.
	Authorize func(ctx context.Context, c *Change) error
	// Allocate gives an object what no other one has: an address, a port. It is called
	// for a write of the resource itself, before anything else completes the object. A
	// Mark that Resolve returns keeps what was given. The error is a Status.
	Allocate func(ctx context.Context, c *Change) error
	// Prepare completes an object, in the storage version, before it is validated.
	Prepare func(ctx context.Context, c *Change)
	// ValidateName returns what is wrong with a name, or with the prefix of one
	// that is to be generated. Nil asks for a DNS subdomain.
	ValidateName func(name string, prefix bool) []string
	// ValidatesMetadataLast says that the metadata of a new object is validated only if the
	// rest of the object is valid.
	ValidatesMetadataLast bool
	// Validate returns what the schema cannot say.
	Validate func(ctx context.Context, c *Change) field.ErrorList
	// Warn returns warnings for the client, who writes what is valid.
	Warn func(ctx context.Context, c *Change) []string
	// Canonicalize brings an object that is valid into the form in which it is stored.
	Canonicalize func(obj map[string]any)

	// Begin is called before a write is resolved and its result after the write was
	// made or given up, for kinds whose objects must be decided on one after the other.
	Begin func(ctx context.Context) (end func(), err error)
	// Resolve brings an object that may be written, or that is about to go, to what
	// follows from other objects. It may replace outermost fields of it. It is asked
	// again, with the object as it was before, when one of its Marks has moved before
	// the write was made. ErrTaken says that the object must be allocated anew.
	Resolve func(ctx context.Context, c *Change) ([]Mark, error)
	// HasFinalizers reports whether a deleted object waits for finalizers besides those
	// in its metadata.
	HasFinalizers func(obj map[string]any) bool
	// Wrote is told of a write of the resource or a subresource that was stored, and that changed
	// something. It changes nothing.
	Wrote func(c *Change)
	// Committed returns once the server serves what a write at revision says.
	Committed func(ctx context.Context, revision int64) error
}

// A Change is a write as the hooks of a kind see it. Who asks for it is in the context:
// request.UserFrom.
type Change struct {
	// Object is what is written. A hook changes it in place, where it may.
	Object map[string]any
	// Old is what it takes the place of; nil on create. It is not to be changed.
	Old map[string]any
	// Namespace and Name are those of the object in the request. On create, there is no
	// name yet where the server makes it.
	Namespace, Name string
	// Subresource is the one that is written through, or "".
	Subresource string
	// Version is the name of the one in which the client sees the object.
	Version string
	// DryRun says that nothing will be stored, so that nothing else may be done either.
	DryRun bool
	// Typed is what the hooks that look at an object one after the other share: the
	// objects as Go values. Nobody else looks at it.
	Typed any
	// Objects are all that is stored. A Creater has them, and Validate, which only reads.
	Objects Objects
}

// Changing makes a hook of a function that looks at nothing but the objects.
func Changing(change func(obj, old map[string]any)) func(context.Context, *Change) {
	return func(_ context.Context, c *Change) { change(c.Object, c.Old) }
}

// Looking is Changing for a function that changes nothing and returns what it finds.
func Looking[T any](look func(obj, old map[string]any) T) func(context.Context, *Change) T {
	return func(_ context.Context, c *Change) T { return look(c.Object, c.Old) }
}

// ErrTaken says that somebody else has what an object was given by Allocate. The write
// begins again with its first phase.
var ErrTaken = errors.New("an allocated value is taken by another object")

// A Mark is a key besides that of the object, by which those writes notice each other
// that must not be decided on from the same state. A write is made only while its Marks
// are where they were when the write was decided on. A Mark is nobody's object, or one
// that comes and goes with the object that is written.
type Mark struct {
	Key      string
	Revision int64 // 0 if there is no such key
	// Moves says that the write changes what others decide on. With it, Value is
	// written under the Key, or the Key goes where Value is nil.
	Moves bool
	Value []byte
}
