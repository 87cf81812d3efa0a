package resource

import (
	"context"
	"errors"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A Creater answers a create without storing what was sent: a review, a token, a
// Binding that becomes a part of a pod. A Version has one for a create of the resource,
// a Subresource for a create of something under an object, which need not exist.
//
// What was sent was completed, validated by the Validate of the Strategy or of the
// Subresource, and admitted. It is the Object of the Change, whose Namespace and Name
// are those in the path.
type Creater interface {
	// Create returns what the client is answered with, or nil for a Status that says no
	// more than that it was done.
	Create(ctx context.Context, c *Change) (map[string]any, error)
}

// A Reader computes the objects of a resource, which is not namespaced, when somebody reads
// them. None is stored, and its Definition has the verbs get and list only.
type Reader interface {
	// Names are those of all objects, in their order in a list.
	Names() []string
	// Read returns the object of one of the Names, whole.
	Read(ctx context.Context, name string) map[string]any
}

// A Connecter answers the requests of a subresource by itself, whatever their method,
// as a stream or in the name of another server: a log, exec, a proxy.
type Connecter interface {
	// Connect returns what answers a request about an object, which need not exist.
	Connect(ctx context.Context, c Connection) (http.Handler, error)
}

// A Connection says what a request for a Connecter is about.
type Connection struct {
	Namespace, Name string
	// Method is that of the request.
	Method string
	// Options are what the ReadOptions of the Subresource have made of the query.
	Options runtime.Object
	// Objects are all that is stored.
	Objects Objects
	// Path is what follows the name of the subresource, with its slash, where the
	// subresource has paths below it.
	Path string
}

// Objects are what is stored of all kinds, for a kind that answers requests by itself.
// What is written is written in the name of the server, in the storage version: nobody is
// asked, and nothing is validated. The errors are those that a client sees, but for
// ErrOvertaken.
type Objects interface {
	// Get returns an object as it is now.
	Get(ctx context.Context, d *Definition, namespace, name string) (map[string]any, error)
	// List returns the objects of a namespace as they are now. What cannot be decoded is
	// not among them.
	List(ctx context.Context, d *Definition, namespace string) ([]map[string]any, error)
	// Replace stores objects in the place of those that they were made of, all or none.
	// Each has the resourceVersion that Get or List has returned. An object that has not
	// changed is not written. It returns the resourceVersion that the first has now.
	Replace(ctx context.Context, objects ...Object) (resourceVersion string, err error)
	// Delete deletes an object as for a client, and does so only as far as it changes
	// nothing if the options are for a dry run.
	Delete(ctx context.Context, d *Definition, namespace, name string, options *metav1.DeleteOptions) error
}

// An Object is an object of a kind.
type Object struct {
	Definition *Definition
	Tree       map[string]any
}

// ErrOvertaken says that an object is no longer the one that Get or List has returned.
var ErrOvertaken = errors.New("the object was written by someone else")
