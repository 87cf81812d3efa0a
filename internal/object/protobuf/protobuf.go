// Package protobuf writes JSON as the protobuf of a Go type of Kubernetes.
//
// The tags of the type say what number and form each field has. So no value of the type is
// made: a Pod is some hundred allocations as a Go value, and none on its way through here.
// What is written is what the Marshal of the type would write: fields by their
// numbers, the keys of maps in order, and those that are no pointers even where they are
// empty. A type that reads JSON in its own way, such as a quantity or a time, does so here.
//
// It does not know what an object is, nor the wrapper that Kubernetes puts around one.
package protobuf

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// Types are those whose messages are written. Each is looked at once, when the first of its
// values is written.
type Types struct {
	messages sync.Map // of *message, by reflect.Type
}

// Append appends the message of a struct type that a JSON object says. Fields that the
// type does not have are left out.
func (types *Types) Append(dst []byte, t reflect.Type, doc []byte) ([]byte, error) {
	m, err := types.message(t)
	if err != nil {
		return nil, err
	}
	w := writers.Get().(*writer)
	defer writers.Put(w)
	w.in, w.at, w.out, w.spans = doc, 0, w.out[:0], w.spans[:0]
	err = w.message(m)
	w.in = nil
	if err != nil {
		return nil, err
	}
	return append(dst, w.out...), nil
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// A writer reads one document and writes what it says.
type writer struct {
	in    []byte
	at    int // the next byte of in
	out   []byte
	spans []span // of the fields of the messages that are being written
	order []byte // a message whose fields are being put in order
}

// A span is a part of what is written.
type span struct{ from, to int }

// message writes the fields of a message, from an object or null.
func (w *writer) message(m *message) error {
	begin, first := len(w.out), len(w.spans)
	w.spans = slices.Grow(w.spans, m.slots)[:first+m.slots]
	clear(w.spans[first:])
	err := w.members(func(name []byte) error {
		f, ok := m.byName[string(name)]
		if !ok {
			return w.skip()
		}
		if w.null() {
			return nil
		}
		from := len(w.out)
		if err := f.write(w, f.tag); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w.spans[first+f.slot] = span{from, len(w.out)}
		return nil
	})
	if err != nil {
		return err
	}
	w.order = w.order[:0]
	w.inOrder(m.fields, w.spans[first:])
	w.out = append(w.out[:begin], w.order...)
	w.spans = w.spans[:first]
	return nil
}

// inOrder appends to w.order what was written of fields, and what is written of those of
// which nothing was said.
func (w *writer) inOrder(fields []*field, spans []span) {
	for _, f := range fields {
		switch {
		case f.inline != nil:
			if f.optional && !slices.ContainsFunc(f.inline, func(f *field) bool { return f.said(spans) }) {
				continue
			}
			from := len(w.order)
			w.inOrder(f.inline, spans)
			w.order = prefix(w.order, from, f.tag)
		case f.said(spans):
			s := spans[f.slot]
			w.order = append(w.order, w.out[s.from:s.to]...)
		default:
			w.order = append(w.order, f.absent...)
		}
	}
}

// said reports whether the document has a field, or one of those that are inline in it.
func (f *field) said(spans []span) bool {
	if f.inline != nil {
		return slices.ContainsFunc(f.inline, func(f *field) bool { return f.said(spans) })
	}
	return f.slot >= 0 && spans[f.slot] != span{}
}

// prefix puts the tag and the length of what begins at from before it.
func prefix(buf []byte, from int, tag []byte) []byte {
	size := len(buf) - from
	buf = append(buf, tag...)
	buf = appendVarint(buf, uint64(size))
	n := len(buf) - from - size
	var head [16]byte
	copy(head[:], buf[from+size:])
	copy(buf[from+n:], buf[from:from+size])
	copy(buf[from:], head[:n])
	return buf
}

func appendVarint(dst []byte, v uint64) []byte {
	for v >= 0x80 {
		dst = append(dst, byte(v)|0x80)
		v >>= 7
	}
	return append(dst, byte(v))
}
