package request

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
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
	Warnings    []string     // for the client, by those who find out who it is
	Access      Access       // nil before the request is authorized
	Place       Place        // among those that are answered at a time; nil if it takes none

	seen, began atomic.Int64
	read        atomic.Bool
	waited      atomic.Int64 // nanoseconds
}

// Wait says that the request has waited so long for others: for admission webhooks, or in a queue.
// A nil Request counts nothing.
func (q *Request) Wait(d time.Duration) {
	if q != nil {
		q.waited.Add(int64(d))
	}
}

// Waited returns how long the request has waited for others.
func (q *Request) Waited() time.Duration { return time.Duration(q.waited.Load()) }

// See says that a revision of the store includes all that was acknowledged before the request
// came. It is not Seen once somebody has read: the request may have written something since.
func (q *Request) See(revision int64) {
	if !q.read.Load() {
		q.seen.Store(revision)
	}
	q.began.Store(revision)
}

// Began returns what See has said last, or 0: it is good for whoever need not know what has
// happened since the request came.
func (q *Request) Began() int64 { return q.began.Load() }

// Seen returns what See has said, until somebody reads by it: it is good for those who decide
// about the request, one after the other.
func (q *Request) Seen() (revision int64, ok bool) {
	revision = q.seen.Load()
	return revision, revision != 0
}

// TakeSeen is Seen, once: it is good for the first read, and whoever has to read again wants to
// know what has happened since.
func (q *Request) TakeSeen() (revision int64, ok bool) {
	q.read.Store(true)
	revision = q.seen.Swap(0)
	return revision, revision != 0
}

// A Place is what a request takes of the room that a server has for requests.
type Place interface {
	// Leave gives the room to another request, once: somebody else is at work for this one.
	Leave()
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
type Annotation struct {
	Key, Value string
	// Request says that it is for where the log has requests: it says as much.
	Request bool
}

// Annotate adds an annotation. Of two with one key the first counts.
func (q *Request) Annotate(key, value string) { q.add(Annotation{Key: key, Value: value}) }

// AnnotateRequest is Annotate for what says as much as the request.
func (q *Request) AnnotateRequest(key, value string) {
	q.add(Annotation{Key: key, Value: value, Request: true})
}

func (q *Request) add(new Annotation) {
	if !slices.ContainsFunc(q.Annotations, func(a Annotation) bool { return a.Key == new.Key }) {
		q.Annotations = append(q.Annotations, new)
	}
}

// Warn adds a warning for the client, once.
func (q *Request) Warn(message string) {
	if !slices.Contains(q.Warnings, message) {
		q.Warnings = append(q.Warnings, message)
	}
}
