package controller

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// An Event is a write of a key, or, while everything is loaded, what is stored at
// a key as if it had just been created. Controllers share it: what one of them
// reads of the object need not be read again by the next. It is theirs until See
// returns.
type Event struct {
	kv.Event
	// Loading says that the event is part of a load.
	Loading bool

	now, was parsed
	header   *Header
	err      error // of header
}

// A parsed is the result of object.Scan once it is done.
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

// reset makes e about another event. It is used for all, one after the other.
func (e *Event) reset(event *kv.Event, loading bool) {
	e.Event, e.Loading = *event, loading
	e.now.done, e.was.done = false, false
	e.header, e.err = nil, nil
}

// Now returns the object as it was written.
func (e *Event) Now() (*object.Encoded, error) { return e.now.scan(e.Value, e.Revision) }

// Was returns the object as it was before.
func (e *Event) Was() (*object.Encoded, error) { return e.was.scan(e.Prev, e.PrevRevision) }

// Header returns the header of the object as it was written, which may be kept.
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
