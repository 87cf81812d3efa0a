package protobuf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

var errTruncated = errors.New("unexpected end of JSON input")

// next returns the first byte of the next token without consuming it.
func (w *writer) next() byte {
	for ; w.at < len(w.in); w.at++ {
		switch c := w.in[w.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// take consumes a byte, or fails.
func (w *writer) take(c byte) error {
	switch got := w.next(); got {
	case c:
		w.at++
		return nil
	case 0:
		return errTruncated
	default:
		return fmt.Errorf("expected %q, found %q", c, got)
	}
}

// null consumes a null, if there is one.
func (w *writer) null() bool {
	if w.next() != 'n' {
		return false
	}
	_, err := w.literal()
	return err == nil
}

// literal consumes a number, true, false or null.
func (w *writer) literal() ([]byte, error) {
	w.next()
	from := w.at
	for ; w.at < len(w.in); w.at++ {
		switch w.in[w.at] {
		case ',', '}', ']', ' ', '\t', '\r', '\n', '"', '{', '[', ':':
			if w.at == from {
				return nil, fmt.Errorf("expected a number or a word, found %q", w.in[w.at])
			}
			return w.in[from:w.at], nil
		}
	}
	if w.at == from {
		return nil, errTruncated
	}
	return w.in[from:w.at], nil
}

// quoted consumes a string. It returns the string with its quotes, and reports whether it has
// escapes.
func (w *writer) quoted() (all []byte, escaped bool, err error) {
	if err := w.take('"'); err != nil {
		return nil, false, err
	}
	from := w.at - 1
	for {
		n := bytes.IndexByte(w.in[w.at:], '"')
		if n < 0 {
			return nil, false, errTruncated
		}
		w.at += n + 1
		backslashes := 0
		for w.in[w.at-2-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			break
		}
	}
	all = w.in[from:w.at]
	return all, bytes.IndexByte(all, '\\') >= 0, nil
}

// text consumes a string and returns its value.
func (w *writer) text() ([]byte, error) {
	all, escaped, err := w.quoted()
	if err != nil {
		return nil, err
	}
	if said := all[1 : len(all)-1]; !escaped && utf8.Valid(said) {
		return said, nil
	}
	var s string
	err = json.Unmarshal(all, &s)
	return []byte(s), err
}

// skip consumes a value.
func (w *writer) skip() error {
	switch w.next() {
	case '"':
		_, _, err := w.quoted()
		return err
	case '{', '[':
		return w.skipNested()
	default:
		_, err := w.literal()
		return err
	}
}

// skipNested consumes an object or an array: everything until the bracket that closes it.
func (w *writer) skipNested() error {
	depth := 0
	for w.at < len(w.in) {
		switch w.in[w.at] {
		case '"':
			if _, _, err := w.quoted(); err != nil {
				return err
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if w.at++; depth == 0 {
			return nil
		}
	}
	return errTruncated
}

// raw consumes a value and returns its JSON.
func (w *writer) raw() ([]byte, error) {
	w.next()
	from := w.at
	err := w.skip()
	return w.in[from:w.at], err
}

// members consumes an object. It calls each at every value, which each must consume.
func (w *writer) members(each func(name []byte) error) error {
	if err := w.take('{'); err != nil {
		return err
	}
	if w.next() == '}' {
		w.at++
		return nil
	}
	for {
		name, err := w.text()
		if err != nil {
			return err
		}
		if err := w.take(':'); err != nil {
			return err
		}
		if err := each(name); err != nil {
			return err
		}
		if w.next() != ',' {
			return w.take('}')
		}
		w.at++
	}
}

// elements consumes an array. It calls each at every value, which each must consume.
func (w *writer) elements(each func() error) error {
	if err := w.take('['); err != nil {
		return err
	}
	if w.next() == ']' {
		w.at++
		return nil
	}
	for {
		if err := each(); err != nil {
			return err
		}
		if w.next() != ',' {
			return w.take(']')
		}
		w.at++
	}
}
