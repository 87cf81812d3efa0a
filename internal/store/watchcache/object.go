package watchcache

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// An Object is one stored object. It is shared by everyone who reads it, and
// nobody changes it.
type Object struct {
	object.Encoded
	Key string
	// Err says why the stored value cannot be read as an object. Then only JSON
	// and Revision of Encoded are set.
	Err error

	memos memos
}

func newObject(key string, value []byte, revision int64) *Object {
	o := &Object{Key: key}
	if o.Encoded, o.Err = object.Scan(value, revision); o.Err != nil {
		o.Encoded = object.Encoded{JSON: value, Revision: revision}
	}
	return o
}

// Memo returns what compute makes of o, which it is asked for once for each key;
// the result is kept with the object for as long as the object is kept, or until
// somebody asks whom it does not serve any more. Whoever asks while it is being
// computed waits for it and shares an error, which is not kept: the next one to ask
// computes again. Compute must therefore not depend on who asks. A key is comparable;
// an object that has many keys forgets old ones.
func (o *Object) Memo(key any, m Moment, compute func() ([]byte, error)) ([]byte, error) {
	return o.memos.get(key, m, compute)
}

// Claim is for those who compute for many objects at once: where nobody has
// computed what key names, nor is at it, the caller does, and says with settle,
// whatever happens, what became of it. Until then all others wait, so who has
// claims does not wait for others before all of them are settled.
func (o *Object) Claim(key any, m Moment) (settle func(value []byte, err error), ok bool) {
	return o.memos.claim(key, m)
}

// An Event is one write to an object. It is shared by everyone who watches.
type Event struct {
	Object *Object // nil when the object was deleted
	// Prev is the object before, nil when it was created. When it was deleted,
	// a copy of Prev.Encoded with the event's Revision is what a client sees.
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

// Memo is Object.Memo for what is computed of an event. It is kept while the
// event is recent.
func (e *Event) Memo(key any, m Moment, compute func() ([]byte, error)) ([]byte, error) {
	return e.memos.get(key, m, compute)
}

// size is about how many bytes are kept only because the event is: the object
// that it made is either current or the Prev of another event.
func (e *Event) size() int64 {
	const fixed = 400
	if e.Prev == nil {
		return fixed
	}
	return fixed + int64(len(e.Prev.JSON))
}

// held is about how many bytes whoever has the event keeps.
func (e *Event) held() int {
	n := 0
	for _, o := range []*Object{e.Object, e.Prev} {
		if o != nil {
			n += len(o.JSON)
		}
	}
	return n
}

// pastEvent is an event that was read from the backend's history. One whose
// previous object the backend cannot tell still says that there was one.
func pastEvent(e kv.Event) *Event {
	event := &Event{Revision: e.Revision}
	if e.Value != nil {
		event.Object = newObject(e.Key, e.Value, e.Revision)
	}
	if e.Value == nil || e.PrevRevision != kv.Absent {
		event.Prev = newObject(e.Key, e.Prev, e.PrevRevision)
	}
	return event
}
