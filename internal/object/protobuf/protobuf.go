// Package protobuf converts JSON to the protobuf of a Kubernetes Go type.
//
// Numbers and types of fields come from the struct tags of the Go type, and no value of that type
// is created: a Pod needs hundreds of allocations as a Go value, and none here. The output equals
// that of the type's Marshal: fields sorted by number, map keys sorted, and fields other than
// pointers written even if empty. Types with their own JSON methods, such as quantities and
// times, use those.
//
// The package does not know objects, nor the wrapper of Kubernetes' protobuf documents.
package protobuf

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// Types caches the plans of types. Each type is analyzed once, at its first value.
type Types struct {
	messages sync.Map // of *message, by reflect.Type
}

// Append appends the message of a struct type for a JSON object. Fields that the type does not
// have are skipped.
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

// A writer converts one document.
type writer struct {
	in    []byte
	at    int // offset of the next byte of in
	out   []byte
	spans []span // of the fields of open messages
	order []byte // scratch space for sorting fields
}

// A span is a part of the output.
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

// inOrder appends the output of fields to w.order, in their order, with the defaults of missing
// ones.
func (w *writer) inOrder(fields []*field, spans []span) {
	for _, f := range fields {
		switch {
		case f.inline != nil:
			if f.optional && !slices.ContainsFunc(f.inline, func(f *field) bool { return f.present(spans) }) {
				continue
			}
			from := len(w.order)
			w.inOrder(f.inline, spans)
			w.order = prefix(w.order, from, f.tag)
		case f.present(spans):
			s := spans[f.slot]
			w.order = append(w.order, w.out[s.from:s.to]...)
		default:
			w.order = append(w.order, f.absent...)
		}
	}
}

// present reports whether the document has a field, or a field of an inline struct.
func (f *field) present(spans []span) bool {
	if f.inline != nil {
		return slices.ContainsFunc(f.inline, func(f *field) bool { return f.present(spans) })
	}
	return f.slot >= 0 && spans[f.slot] != span{}
}

// prefix inserts the tag and the length before the output from from on.
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
