package resource

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object/gate"
)

// A Creater handles creates that store nothing: a review, a token, a Binding that becomes a part
// of a pod. A Version has one for creates of the resource, a Subresource for creates below an
// object, which need not exist.
//
// The body was completed, validated by the Validate of the Strategy or of the Subresource, and
// admitted. It is the Object of the Change, whose Namespace and Name are those in the path.
type Creater interface {
	// Create returns the object for the answer, or nil for a Status of success.
	Create(ctx context.Context, c *Change) (map[string]any, error)
}

// A Reader computes the objects of a cluster-scoped resource when they are read. None is stored,
// and its Definition has only the verbs get and list.
type Reader interface {
	// Names returns the names of all objects, in the order of a list.
	Names() []string
	// Read returns the object of one of the Names.
	Read(ctx context.Context, name string) map[string]any
}

// A Connecter handles all requests of a subresource, whatever their method: a stream such as a
// log or exec, or a proxy.
type Connecter interface {
	// Connect returns the handler of a request about an object, which need not exist.
	Connect(ctx context.Context, c Connection) (http.Handler, error)
}

// A Connection describes a request to a Connecter.
type Connection struct {
	Namespace, Name string
	// Method of the request.
	Method string
	// Options is the result of the Subresource's ReadOptions for the query.
	Options runtime.Object
	// Objects has all stored objects.
	Objects Objects
	// Gates are the feature gates of the server.
	Gates *gate.Set
	// Path is the path below the subresource, with its slash, if the subresource has such paths.
	Path string
}

// Objects reads and writes stored objects, for kinds with their own handlers. Writes are the
// server's own, in the storage version: without authorization, admission and validation. Errors
// are Statuses, except ErrOvertaken.
type Objects interface {
	// Get returns the current object.
	Get(ctx context.Context, d *Definition, namespace, name string) (map[string]any, error)
	// List returns the current objects of a namespace, without those that do not decode.
	List(ctx context.Context, d *Definition, namespace string) ([]map[string]any, error)
	// Replace stores objects in place of their originals, all or none. Each has the
	// resourceVersion of its original from Get or List. Unchanged objects are not written. It
	// returns the new resourceVersion of the first.
	Replace(ctx context.Context, objects ...Object) (resourceVersion string, err error)
	// Delete deletes an object as for a client. It honours a dry run in options.
	Delete(ctx context.Context, d *Definition, namespace, name string, options *metav1.DeleteOptions) error
}

// An Object is an object with its kind.
type Object struct {
	Definition *Definition
	Tree       map[string]any
}

// ErrOvertaken reports that an object has changed since Get or List returned it.
var ErrOvertaken = errors.New("the object was written by someone else")
