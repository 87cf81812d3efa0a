package object

import (
	"errors"
	"strconv"
	"strings"
)

// A Step leads from a value into a part of it: to a field, or to an element of a list.
type Step struct {
	Key   string
	Index int // of an element; -1 for a field
}

// A Path leads from an object to a value in it.
type Path []Step

// String returns the path in the form of field paths, such as spec.containers[0].name. A key that such a path
// cannot have is in brackets: metadata.labels[app.kubernetes.io/name].
func (p Path) String() (s string) {
	for _, step := range p {
		switch {
		case step.Index >= 0:
			s += "[" + strconv.Itoa(step.Index) + "]"
		case strings.ContainsAny(step.Key, "./[] \n") || step.Key == "":
			s += "[" + step.Key + "]"
		default:
			s += "." + step.Key
		}
	}
	return strings.TrimPrefix(s, ".")
}

// Leaves calls leaf for the strings and numbers of the JSON of an object, in their order, until it returns
// false. It passes over the values for which enter returns false. Path and value are valid during the call.
func Leaves(data []byte, enter func(Path) bool, leaf func(p Path, value string) bool) error {
	w := leaves{scanner: scanner{data: data}, enter: enter, leaf: leaf, path: make(Path, 0, 16)}
	if err := w.value(); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// errEnough ends Leaves.
var errEnough = errors.New("the caller needs no further leaves")

type leaves struct {
	scanner
	enter func(Path) bool
	leaf  func(Path, string) bool
	path  Path
}

// value visits the value at the current position, and consumes it.
func (w *leaves) value() error {
	w.space()
	if w.pos >= len(w.data) {
		return w.errorf("unexpected end")
	}
	switch c := w.data[w.pos]; {
	case c == '{':
		return w.members('}')
	case c == '[':
		return w.members(']')
	case c == '"':
		value, err := w.str()
		if err == nil && !w.leaf(w.path, value) {
			err = errEnough
		}
		return err
	default:
		start := w.pos
		if !w.word() {
			return w.errorf("found %q, want a value", c)
		}
		if (c == '-' || c >= '0' && c <= '9') && !w.leaf(w.path, text(w.data[start:w.pos])) {
			return errEnough
		}
		return nil
	}
}

// members visits the fields of an object, or the elements of a list, up to the closing bracket.
func (w *leaves) members(end byte) error {
	w.pos++
	at := len(w.path)
	w.path = append(w.path, Step{Index: -1})
	for n := 0; ; n++ {
		w.space()
		if n == 0 && w.pos < len(w.data) && w.data[w.pos] == end {
			break
		}
		if end == ']' {
			w.path[at].Index = n
		} else if err := w.key(at); err != nil {
			return err
		}
		var err error
		if w.enter(w.path) {
			err = w.value()
		} else {
			err = w.skip()
		}
		if err != nil {
			return err
		}
		if !w.next(",") {
			break
		}
		w.pos++
	}
	w.path = w.path[:at]
	return w.expect(end)
}

// key consumes the key of a field.
func (w *leaves) key(at int) (err error) {
	if w.path[at].Key, err = w.str(); err != nil {
		return err
	}
	return w.expect(':')
}
