package request

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"time"
)

// A Request is the state of a request that all filters and handlers share.
type Request struct {
	Info Info
	// Sent has the headers of the client. It is read-only.
	Sent http.Header
	User *User // nil before authentication
	// Impersonator is the authenticated user of an impersonated request, else nil. Constraint is
	// the verb that allowed the impersonation, if it was allowed for this request only.
	Impersonator *User
	Constraint   string
	// Prefix precedes the path in the request of the client: the path of a fork.
	Prefix string
	// AuditID identifies the request in logs and in its answer.
	AuditID     string
	Annotations []Annotation // in the order in which they were made
	Warnings    []string     // for the client, by authenticators
	Access      Access       // nil before the request is authorized
	Audit       Audit        // nil if the request is not audited
	Place       Place        // in the limit of requests in flight; nil if it does not count

	seen, began atomic.Int64
	read        atomic.Bool
	waited      atomic.Int64 // nanoseconds
	body        int          // its bytes and 1; 0 if it was not read
}

// ReadBody records the size of the body when a handler has read it.
func (q *Request) ReadBody(bytes int) {
	if q != nil {
		q.body = bytes + 1
	}
}

// BodySize returns the size of the body, and whether it was read.
func (q *Request) BodySize() (bytes int, read bool) { return q.body - 1, q.body > 0 }

// Wait adds to the time that the request has waited for others: for admission webhooks or in a
// queue. It may be called on nil.
func (q *Request) Wait(d time.Duration) {
	if q != nil {
		q.waited.Add(int64(d))
	}
}

// Waited returns the total of Wait.
func (q *Request) Waited() time.Duration { return time.Duration(q.waited.Load()) }

// See records a revision of the store that includes every write acknowledged before the request
// arrived. Seen returns it until the first read: after that the request may have written.
func (q *Request) See(revision int64) {
	if !q.read.Load() {
		q.seen.Store(revision)
	}
	q.began.Store(revision)
}

// Began returns the last revision of See, or 0. It is for readers that need not see later writes.
func (q *Request) Began() int64 { return q.began.Load() }

// Seen returns the revision of See until it is taken. It is for authorizers and admission, one
// after the other.
func (q *Request) Seen() (revision int64, ok bool) {
	revision = q.seen.Load()
	return revision, revision != 0
}

// TakeSeen is Seen, once. It is for the first read: a repeated read must see later writes.
func (q *Request) TakeSeen() (revision int64, ok bool) {
	q.read.Store(true)
	revision = q.seen.Swap(0)
	return revision, revision != 0
}

// A Place is a request's place in the limit of requests in flight.
type Place interface {
	// Release frees the place, while another server works on the request, or when a watch has sent
	// the present objects. It may be called repeatedly.
	Release()
}

// Release frees the place of the request, if it has one. It may be called on nil.
func (q *Request) Release() {
	if q != nil && q.Place != nil {
		q.Place.Release()
	}
}

// Access checks further rights of an authorized user.
type Access interface {
	// May returns an error unless the user may perform the same request with another verb.
	May(ctx context.Context, verb string) error
}

// May returns an error unless the user of the context may perform the request with another verb.
// Without a request, such as in a controller, everything is allowed.
func May(ctx context.Context, verb string) error {
	if q := From(ctx); q != nil && q.Access != nil {
		return q.Access.May(ctx, verb)
	}
	return nil
}

type key struct{}

// With returns a context that carries q. Later filters add to q.
func With(ctx context.Context, q *Request) context.Context {
	return context.WithValue(ctx, key{}, q)
}

// From returns the Request of a context, or nil.
func From(ctx context.Context) *Request {
	q, _ := ctx.Value(key{}).(*Request)
	return q
}

// InfoOf returns the Info of a request. It parses the request if the context has none.
func InfoOf(r *http.Request) Info {
	if q := From(r.Context()); q != nil {
		return q.Info
	}
	return Parse(r)
}

// UserFrom returns the user of a context, or nil.
func UserFrom(ctx context.Context) *User {
	if q := From(ctx); q != nil {
		return q.User
	}
	return nil
}

// An Annotation is an audit annotation of a request.
type Annotation struct {
	Key, Value string
	// Request annotations are logged at the audit level that includes requests: they reveal as
	// much.
	Request bool
}

// Annotate adds an annotation. The first value of a key stays.
func (q *Request) Annotate(key, value string) { q.add(Annotation{Key: key, Value: value}) }

// AnnotateRequest is Annotate for an annotation that reveals content of the request.
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
