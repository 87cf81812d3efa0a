package request

import (
	"context"
	"net/http"
	"slices"
)

// A Request is what is known of a request whatever it is about.
type Request struct {
	Info Info
	User *User // nil before authentication
	// Impersonator makes the request as User; nil for a request that is made by User.
	// Constraint is the verb that allowed it, if it was one for this request only.
	Impersonator *User
	Constraint   string
	// AuditID names the request in logs and in its answer.
	AuditID     string
	Annotations []Annotation // in the order in which they were made
	Access      Access       // nil before the request is authorized
}

// Access is what a user who was let in may do besides.
type Access interface {
	// May returns why the user may not do the same with another verb, and nil if they may.
	May(ctx context.Context, verb string) error
}

// May returns why the user of a context may not do what is asked for with another verb. What
// nobody asks for, such as what a controller does, may be done.
func May(ctx context.Context, verb string) error {
	if q := From(ctx); q != nil && q.Access != nil {
		return q.Access.May(ctx, verb)
	}
	return nil
}

type key struct{}

// With returns a context that carries q. What becomes known of the request later is
// written into q.
func With(ctx context.Context, q *Request) context.Context {
	return context.WithValue(ctx, key{}, q)
}

// From returns the Request of a context, or nil.
func From(ctx context.Context) *Request {
	q, _ := ctx.Value(key{}).(*Request)
	return q
}

// InfoOf returns the Info of a request, which it parses if nobody has.
func InfoOf(r *http.Request) Info {
	if q := From(r.Context()); q != nil {
		return q.Info
	}
	return Parse(r)
}

// UserFrom returns who asks, or nil.
func UserFrom(ctx context.Context) *User {
	if q := From(ctx); q != nil {
		return q.User
	}
	return nil
}

// An Annotation is something that is said of a request for the audit log.
type Annotation struct{ Key, Value string }

// Annotate adds an annotation. Of two with one key the first counts.
func (q *Request) Annotate(key, value string) {
	if !slices.ContainsFunc(q.Annotations, func(a Annotation) bool { return a.Key == key }) {
		q.Annotations = append(q.Annotations, Annotation{key, value})
	}
}
