package resource

import (
	"context"
	"net/http"
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

// A Connecter answers the requests of a subresource by itself, whatever their method,
// as a stream or in the name of another server: a log, exec, a proxy.
type Connecter interface {
	// Connect returns what answers a request about an object, which need not exist.
	Connect(ctx context.Context, c Connection) (http.Handler, error)
}

// A Connection says what a request for a Connecter is about.
type Connection struct {
	Namespace, Name string
	// Path is what follows the name of the subresource, with its slash, where the
	// subresource has paths below it.
	Path string
}
