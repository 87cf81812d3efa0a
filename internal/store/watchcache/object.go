package watchcache

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// An Object is one stored object. All readers share it, and it is immutable.
type Object struct {
	object.Encoded
	Key string
	// Err is the error of decoding the stored value. With an error, only JSON and Revision of Encoded
	// are set.
	Err error

	memos memos
}

// NewObject returns the object of a stored value. An object that cannot be decoded has its error.
func NewObject(key string, value []byte, revision int64) *Object {
	o := &Object{Key: key}
	if o.Encoded, o.Err = object.Scan(value, revision); o.Err != nil {
		o.Encoded = object.Encoded{JSON: value, Revision: revision}
	}
	return o
}

// bytes returns the size of the JSON; 0 for nil.
func (o *Object) bytes() int64 {
	if o == nil {
		return 0
	}
	return int64(len(o.JSON))
}

// Memo returns the result of compute for o and a key, and keeps it with the object until the object is
// dropped or a request needs a newer one. Concurrent callers wait for one computation and share its
// error; errors are not kept, and the next caller computes again. So compute must not depend on the
// caller. A key is comparable. An object with many keys drops old ones.
func (o *Object) Memo(key any, m Validity, compute func() ([]byte, error)) ([]byte, error) {
	return o.memos.get(key, m, compute)
}

// Claim is for batches of computations. If the result of the key is neither computed nor in progress,
// the caller must compute it and must call publish in any case. All other callers wait until then. So a
// claimant must not wait for others before it has published all its claims.
func (o *Object) Claim(key any, m Validity) (publish func(value []byte, err error), ok bool) {
	return o.memos.claim(key, m)
}

// An Event is one write to an object. All watchers share it.
type Event struct {
	Object *Object // nil when the object was deleted
	// Prev is the object before, nil for a creation. For a deletion, clients see a copy of
	// Prev.Encoded with the event's Revision.
	Prev     *Object
	Revision int64

	memos memos
}

// Key returns the key of the object.
func (e *Event) Key() string {
	if e.Object != nil {
		return e.Object.Key
	}
	return e.Prev.Key
}

// Memo is Object.Memo for results derived from an event. They are kept while the event is recent.
func (e *Event) Memo(key any, m Validity, compute func() ([]byte, error)) ([]byte, error) {
	return e.memos.get(key, m, compute)
}

// size returns about the number of bytes that the event alone keeps in memory: its new object is
// either current or the Prev of another event.
func (e *Event) size() int64 {
	const fixed = 400
	if e.Prev == nil {
		return fixed
	}
	return fixed + int64(len(e.Prev.JSON))
}

// held returns about the number of bytes that a holder of the event keeps in memory.
func (e *Event) held() int {
	n := 0
	for _, o := range []*Object{e.Object, e.Prev} {
		if o != nil {
			n += len(o.JSON)
		}
	}
	return n
}

// pastEvent converts an event of the backend's history. If the backend has no previous value, Prev
// still marks that there was one.
func pastEvent(e kv.Event) *Event {
	event := &Event{Revision: e.Revision}
	if e.Value != nil {
		event.Object = NewObject(e.Key, e.Value, e.Revision)
	}
	if e.Value == nil || e.PrevRevision != kv.Absent {
		event.Prev = NewObject(e.Key, e.Prev, e.PrevRevision)
	}
	return event
}
