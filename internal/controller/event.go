package controller

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// An Event is a write of a key or, during a load, a stored object in the form of a create.
// Controllers share it: an object is parsed once for all of them. It is valid until See returns.
type Event struct {
	kv.Event
	// Loading is true during a load.
	Loading bool

	now, was parsed
	header   *Header
	err      error // of header
}

// A parsed caches the result of object.Scan.
type parsed struct {
	done    bool
	encoded object.Encoded
	err     error
}

func (p *parsed) scan(value []byte, revision int64) (*object.Encoded, error) {
	if !p.done {
		p.encoded, p.err = object.Scan(value, revision)
		p.done = true
	}
	return &p.encoded, p.err
}

// reset reuses e for another event.
func (e *Event) reset(event *kv.Event, loading bool) {
	e.Event, e.Loading = *event, loading
	e.now.done, e.was.done = false, false
	e.header, e.err = nil, nil
}

// Now returns the object after the write.
func (e *Event) Now() (*object.Encoded, error) { return e.now.scan(e.Value, e.Revision) }

// Was returns the object before the write.
func (e *Event) Was() (*object.Encoded, error) { return e.was.scan(e.Prev, e.PrevRevision) }

// Header returns the header of the object after the write. The caller may keep it.
func (e *Event) Header() (*Header, error) {
	if e.header != nil || e.err != nil {
		return e.header, e.err
	}
	now, err := e.Now()
	if err == nil {
		e.header, err = headerOf(e.Key, now)
	}
	e.err = err
	return e.header, err
}
