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
	// AuditID names the request in logs and in its answer.
	AuditID     string
	Annotations []Annotation // in the order in which they were made
	Warnings    []string     // for the client, by those who find out who it is
	// Allowed returns why the user may not do the same with another verb. Only those who
	// connect to something have it.
	Allowed func(ctx context.Context, verb string) error
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

// Warn adds a warning for the client, once.
func (q *Request) Warn(message string) {
	if !slices.Contains(q.Warnings, message) {
		q.Warnings = append(q.Warnings, message)
	}
}
