package protobuf

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"sync"

	kjson "sigs.k8s.io/json"
)

// writeOf returns the write function of a type.
func (types *Types) writeOf(t reflect.Type) (write, error) {
	switch {
	case readsItself(t):
		return itselfOf(t).write, nil
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return (*writer).bytes, nil
	}
	switch t.Kind() {
	case reflect.String:
		return (*writer).string, nil
	case reflect.Bool:
		return (*writer).bool, nil
	case reflect.Int32, reflect.Int64:
		bits := t.Bits()
		return func(w *writer, tag []byte) error { return w.int(tag, bits) }, nil
	case reflect.Float64:
		return (*writer).float, nil
	case reflect.Struct:
		// Resolved at the first value, because types may be recursive.
		of := sync.OnceValues(func() (*message, error) { return types.message(t) })
		return func(w *writer, tag []byte) error {
			m, err := of()
			if err != nil {
				return err
			}
			from := len(w.out)
			if err := w.message(m); err != nil {
				return err
			}
			w.out = prefix(w.out, from, tag)
			return nil
		}, nil
	case reflect.Slice:
		return types.listOf(t.Elem())
	case reflect.Map:
		return types.mapOf(t)
	}
	return nil, fmt.Errorf("a %s has no protobuf form", t)
}

func (w *writer) data(tag, data []byte) {
	w.out = append(w.out, tag...)
	w.out = appendVarint(w.out, uint64(len(data)))
	w.out = append(w.out, data...)
}

func (w *writer) string(tag []byte) error {
	s, err := w.text()
	if err != nil {
		return err
	}
	w.data(tag, s)
	return nil
}

// bytes writes base64 in JSON, or an array of numbers.
func (w *writer) bytes(tag []byte) error {
	if w.next() == '[' {
		raw, err := w.raw()
		if err != nil {
			return err
		}
		var data []byte
		if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &data); err != nil {
			return err
		}
		w.data(tag, data)
		return nil
	}
	s, err := w.text()
	if err != nil {
		return err
	}
	from := len(w.out)
	if w.out, err = base64.StdEncoding.AppendDecode(w.out, s); err != nil {
		return err
	}
	w.out = prefix(w.out, from, tag)
	return nil
}

func (w *writer) bool(tag []byte) error {
	word, err := w.literal()
	if err != nil {
		return err
	}
	var b byte
	switch string(word) {
	case "true":
		b = 1
	case "false":
	default:
		return fmt.Errorf("expected true or false, found %s", word)
	}
	w.out = append(append(w.out, tag...), b)
	return nil
}

func (w *writer) int(tag []byte, bits int) error {
	word, err := w.literal()
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(string(word), 10, bits)
	if err != nil {
		return err
	}
	w.out = appendVarint(append(w.out, tag...), uint64(n))
	return nil
}

func (w *writer) float(tag []byte) error {
	word, err := w.literal()
	if err != nil {
		return err
	}
	n, err := strconv.ParseFloat(string(word), 64)
	if err != nil {
		return err
	}
	w.out = binary.LittleEndian.AppendUint64(append(w.out, tag...), math.Float64bits(n))
	return nil
}

// listOf writes a field for each value of a list.
func (types *Types) listOf(t reflect.Type) (write, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	one, err := types.writeOf(t)
	if err != nil {
		return nil, err
	}
	return func(w *writer, tag []byte) error {
		return w.elements(func() error {
			if !w.null() {
				return one(w, tag)
			}
			empty, err := absent(t, tag)
			w.out = append(w.out, empty...)
			return err
		})
	}, nil
}

// mapOf writes a field for each value of a map: a message with the key and the value.
func (types *Types) mapOf(t reflect.Type) (write, error) {
	if t.Key().Kind() != reflect.String {
		return nil, fmt.Errorf("a %s has no protobuf form", t)
	}
	one, err := types.writeOf(t.Elem())
	if err != nil {
		return nil, err
	}
	keyTag, valueTag := tagOf(1, t.Key()), tagOf(2, t.Elem())
	empty, err := absent(t.Elem(), valueTag)
	if err != nil {
		return nil, err
	}
	return func(w *writer, tag []byte) error {
		begin := len(w.out)
		var entries []entry
		sorted := true
		err := w.members(func(name []byte) error {
			sorted = sorted && (len(entries) == 0 || bytes.Compare(entries[len(entries)-1].key, name) < 0)
			from := len(w.out)
			w.data(keyTag, name)
			if w.null() {
				w.out = append(w.out, empty...)
			} else if err := one(w, valueTag); err != nil {
				return err
			}
			w.out = prefix(w.out, from, tag)
			entries = append(entries, entry{name, span{from, len(w.out)}})
			return nil
		})
		if err != nil || sorted {
			return err
		}
		sort.SliceStable(entries, func(i, k int) bool { return bytes.Compare(entries[i].key, entries[k].key) < 0 })
		w.order = w.order[:0]
		for _, e := range entries {
			w.order = append(w.order, w.out[e.from:e.to]...)
		}
		w.out = append(w.out[:begin], w.order...)
		return nil
	}, nil
}

// An entry is one of a map.
type entry struct {
	key []byte
	span
}
