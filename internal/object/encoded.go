package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unsafe"
)

// Encoded is an object as it is stored: its JSON in the storage version, without a
// resourceVersion, and the offsets that are needed to serve it without parsing.
//
// Its strings share the bytes of JSON, so JSON must not change.
type Encoded struct {
	JSON     []byte
	Revision int64 // of the write that stored it, served as resourceVersion

	Name      string
	Namespace string
	UID       string
	Labels    Labels
	Deleting  bool // has a deletionTimestamp
	Held      bool // has finalizers

	commaBefore, commaAfter bool // around the resourceVersion

	apiVersion span // the content of the string, without quotes
	kind       span // likewise
	metadata   span // with its braces
	version    span // replaced by the resourceVersion; empty in our own store
}

// A span is a part of Encoded.JSON.
type span struct{ from, to int32 }

// Labels are the labels of an object in stored order. They implement the interface for selectors.
type Labels []Label

// A Label is one key and its value.
type Label struct{ Key, Value string }

// Has reports whether there is a label of that key.
func (l Labels) Has(key string) bool { _, ok := l.Lookup(key); return ok }

// Get returns the value of a label, or "".
func (l Labels) Get(key string) string { v, _ := l.Lookup(key); return v }

// Lookup returns the value of a label and whether there is one.
func (l Labels) Lookup(key string) (string, bool) {
	for i := range l {
		if l[i].Key == key {
			return l[i].Value, true
		}
	}
	return "", false
}

// Scan scans the header of a stored object: the top-level fields and the metadata. It skips the
// rest. A value that is not an object with metadata is an error.
func Scan(data []byte, revision int64) (Encoded, error) {
	e := Encoded{JSON: data, Revision: revision, version: span{-1, -1}}
	s := scanner{data: data}
	err := s.object(func(key string) error {
		switch key {
		case "apiVersion":
			from := s.pos + 1
			if _, err := s.str(); err != nil {
				return err
			}
			e.apiVersion = span{int32(from), int32(s.pos - 1)}
			return nil
		case "kind":
			from := s.pos + 1
			if _, err := s.str(); err != nil {
				return err
			}
			e.kind = span{int32(from), int32(s.pos - 1)}
			return nil
		case "metadata":
			from := s.pos
			err := e.scanMetadata(&s)
			if e.version.from >= int32(from) { // or it was in an earlier, duplicate metadata
				e.metadata = span{int32(from), int32(s.pos)}
			}
			return err
		default:
			return s.skip()
		}
	})
	if err == nil && s.rest() {
		err = s.errorf("more after the end of the object")
	}
	if err == nil && e.version.from < 0 {
		err = errors.New("the object has no metadata")
	}
	if err != nil {
		return Encoded{}, fmt.Errorf("not a stored object: %w", err)
	}
	return e, nil
}

func (e *Encoded) scanMetadata(s *scanner) error {
	empty := true
	err := s.object(func(key string) error {
		keyStart := s.keyStart
		if key > "resourceVersion" && e.version.from < 0 {
			e.version, e.commaAfter = span{int32(keyStart), int32(keyStart)}, true
		}
		empty = false
		var err error
		switch key {
		case "name":
			e.Name, err = s.str()
		case "namespace":
			e.Namespace, err = s.str()
		case "uid":
			e.UID, err = s.str()
		case "deletionTimestamp":
			e.Deleting = !s.next("null")
			err = s.skip()
		case "finalizers":
			e.Held = !s.next("null") && !s.next("[]")
			err = s.skip()
		case "labels":
			err = e.scanLabels(s)
		case "resourceVersion":
			err = s.skip()
			e.version, e.commaAfter = span{int32(keyStart), int32(s.pos)}, false
		default:
			err = s.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if e.version.from < 0 {
		end := int32(s.pos - 1)
		e.version, e.commaBefore = span{end, end}, !empty
	}
	return nil
}

func (e *Encoded) scanLabels(s *scanner) error {
	if s.next("null") {
		return s.skip()
	}
	return s.object(func(key string) error {
		value, err := s.str()
		e.Labels = append(e.Labels, Label{key, value})
		return err
	})
}

// Kind returns the stored kind.
func (e *Encoded) Kind() string { return text(e.JSON[e.kind.from:e.kind.to]) }

// APIVersion returns the stored apiVersion.
func (e *Encoded) APIVersion() string { return text(e.JSON[e.apiVersion.from:e.apiVersion.to]) }

// versionRoom is the maximal size of a resourceVersion field.
const versionRoom = len(`"resourceVersion":"9223372036854775807",`)

// Append appends the object for a client: with its resourceVersion, and with apiVersion unless
// that is "".
func (e *Encoded) Append(dst []byte, apiVersion string) []byte {
	data := e.JSON
	from := int32(0)
	dst = slices.Grow(dst, len(data)+len(apiVersion)+versionRoom)
	// The two changes are made in the order of their offsets.
	first := e.apiVersion.from < e.version.from
	if apiVersion != "" && e.apiVersion.to > 0 && first {
		dst = append(dst, data[:e.apiVersion.from]...)
		dst = append(dst, apiVersion...)
		from = e.apiVersion.to
	}
	dst = e.appendVersion(append(dst, data[from:e.version.from]...))
	from = e.version.to
	if apiVersion != "" && e.apiVersion.to > 0 && !first {
		dst = append(dst, data[from:e.apiVersion.from]...)
		dst = append(dst, apiVersion...)
		from = e.apiVersion.to
	}
	return append(dst, data[from:]...)
}

// appendVersion appends the resourceVersion with its commas, as it is in the metadata.
func (e *Encoded) appendVersion(dst []byte) []byte {
	if e.Revision == 0 {
		return append(dst, e.JSON[e.version.from:e.version.to]...)
	}
	if e.commaBefore {
		dst = append(dst, ',')
	}
	dst = append(dst, `"resourceVersion":"`...)
	dst = strconv.AppendInt(dst, e.Revision, 10)
	dst = append(dst, '"')
	if e.commaAfter {
		dst = append(dst, ',')
	}
	return dst
}

// text returns a string that shares b, which must not change.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// A scanner scans trusted JSON. It finds the ends of values, and does not validate them.
type scanner struct {
	data     []byte
	pos      int
	keyStart int // start of the key of the current field
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("%s at byte %d", fmt.Sprintf(format, args...), s.pos)
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\r', '\t':
			s.pos++
		default:
			return
		}
	}
}

// rest reports whether anything but white space remains.
func (s *scanner) rest() bool { s.space(); return s.pos < len(s.data) }

// next reports whether the next value starts with the word.
func (s *scanner) next(word string) bool {
	s.space()
	return len(s.data)-s.pos >= len(word) && text(s.data[s.pos:s.pos+len(word)]) == word
}

func (s *scanner) expect(c byte) error {
	s.space()
	if s.pos >= len(s.data) {
		return s.errorf("unexpected end, want %q", c)
	}
	if s.data[s.pos] != c {
		return s.errorf("found %q, want %q", s.data[s.pos], c)
	}
	s.pos++
	return nil
}

// object calls field for every field of the object at the current position; field must consume
// the value.
func (s *scanner) object(field func(key string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	if s.next("}") {
		s.pos++
		return nil
	}
	for {
		s.space()
		start := s.pos
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		s.space()
		s.keyStart = start
		if err := field(key); err != nil {
			return err
		}
		if s.next(",") {
			s.pos++
			continue
		}
		return s.expect('}')
	}
}

// str consumes a string and returns its value.
func (s *scanner) str() (string, error) {
	s.space()
	start := s.pos
	if err := s.expect('"'); err != nil {
		return "", err
	}
	escaped := false
	for ; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '\\':
			escaped = true
			s.pos++
		case '"':
			s.pos++
			if !escaped {
				return text(s.data[start+1 : s.pos-1]), nil
			}
			var out string
			err := json.Unmarshal(s.data[start:s.pos], &out)
			return out, err
		}
	}
	return "", s.errorf("unterminated string")
}

// skip consumes one value of any kind.
func (s *scanner) skip() error {
	s.space()
	if s.pos >= len(s.data) {
		return s.errorf("unexpected end")
	}
	switch c := s.data[s.pos]; c {
	case '{', '[':
		return s.skipNested()
	case '"':
		return s.skipString()
	case '}', ']':
		return s.errorf("found a closing bracket, want a value")
	default:
		if !s.word() {
			return s.errorf("found %q, want a value", c)
		}
		return nil
	}
}

// skipNested consumes an object or an array: everything until the bracket that closes it. Brackets in strings
// do not count.
func (s *scanner) skipNested() error {
	depth := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				s.pos++
				return nil
			}
		case '"':
			if err := s.skipString(); err != nil {
				return err
			}
			continue
		}
		s.pos++
	}
	return s.errorf("unexpected end")
}

func (s *scanner) skipString() error {
	first := s.pos + 1
	for from := first; ; {
		i := bytes.IndexByte(s.data[from:], '"')
		if i < 0 {
			s.pos = len(s.data)
			return s.errorf("unterminated string")
		}
		end := from + i
		slashes := 0
		for end-slashes > first && s.data[end-slashes-1] == '\\' {
			slashes++
		}
		from = end + 1
		if slashes%2 == 0 {
			s.pos = from
			return nil
		}
	}
}

// word consumes a number, true, false or null.
func (s *scanner) word() bool {
	start := s.pos
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '-' || c == '+' || c == '.' || c == 'E' {
			s.pos++
			continue
		}
		break
	}
	return s.pos > start
}
