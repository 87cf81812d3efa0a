package fieldset

import (
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object"
)

// A Set is a set of fields in the form of fieldsV1. A key is the name of a field ("f:"), or the keys
// ("k:"), the value ("v:") or the index ("i:") of an element of a list. A field is in the set if the
// Set below it is empty or has the key ".".
//
// A Set is normal if it has the form in which structured-merge-diff writes it; two normal Sets with
// the same fields are equal trees. Functions take and return normal Sets, except Normal.
type Set = object.Tree

// self marks a field with subfields as a member of the set.
const self = "."

func member(s Set) bool {
	if len(s) == 0 {
		return true
	}
	_, ok := s[self]
	return ok
}

// mark adds the field itself to the Set below it. A nil s is no field yet.
func mark(s Set) Set {
	switch {
	case s == nil:
		return Set{}
	case len(s) > 0:
		s[self] = Set{}
	}
	return s
}

// Subtract removes the fields of b from a, which it changes.
func Subtract(a, b Set) {
	if len(a) == 0 {
		return
	}
	for key, v := range b {
		below, ok := a[key].(Set)
		if !ok || key == self {
			continue
		}
		without := v.(Set)
		in := member(below)
		Subtract(below, without)
		delete(below, self)
		switch in = in && !member(without); {
		case len(below) > 0 && in:
			below[self] = Set{}
		case len(below) == 0 && !in:
			delete(a, key)
		}
	}
}

// Unite adds the fields of b to a, which it changes. a takes over parts of b.
func Unite(a, b Set) {
	for key, v := range b {
		below, ok := a[key].(Set)
		if !ok {
			a[key] = v
			continue
		}
		if key == self {
			continue
		}
		more := v.(Set)
		in := member(below) || member(more)
		Unite(below, more)
		delete(below, self)
		if in && len(below) > 0 {
			below[self] = Set{}
		}
	}
}

// Intersect reports whether a and b have a field in common.
func Intersect(a, b Set) bool {
	if len(b) < len(a) {
		a, b = b, a
	}
	for key, v := range a {
		other, ok := b[key].(Set)
		if !ok || key == self {
			continue
		}
		below := v.(Set)
		if member(below) && member(other) || Intersect(below, other) {
			return true
		}
	}
	return false
}

// Contains reports whether all fields of b are in a.
func Contains(a, b Set) bool {
	for key, v := range b {
		if key == self {
			continue
		}
		other, ok := a[key].(Set)
		if !ok {
			return false
		}
		below := v.(Set)
		if member(below) && !member(other) || !Contains(other, below) {
			return false
		}
	}
	return true
}

// Normal reports whether s, which may come from a client, is a normal Set.
func Normal(s object.Tree) bool {
	if _, ok := s[self]; ok {
		return false
	}
	return normal(s)
}

func normal(s object.Tree) bool {
	for key, v := range s {
		below, ok := v.(Set)
		if !ok {
			return false
		}
		if key == self {
			if len(below) > 0 || len(s) == 1 {
				return false
			}
			continue
		}
		if !normalKey(key) || !normal(below) {
			return false
		}
	}
	return true
}

// normalKey reports whether a key is certainly in normal form.
func normalKey(key string) bool {
	kind, rest, ok := strings.Cut(key, ":")
	if !ok {
		return false
	}
	switch kind {
	case "f":
		return true
	case "v":
		rest, ok = cutScalar(rest)
		return ok && rest == ""
	case "i":
		n, err := strconv.Atoi(rest)
		return err == nil && strconv.Itoa(n) == rest
	case "k":
		return normalKeys(rest)
	default:
		return false
	}
}

// normalKeys is normalKey for {"a":1,"b":"c"}.
func normalKeys(s string) bool {
	s, ok := strings.CutPrefix(s, "{")
	for last := ""; ok; {
		end := -1
		if strings.HasPrefix(s, `"`) {
			end = strings.Index(s[1:], `":`)
		}
		if end < 0 {
			return false
		}
		name := s[1 : 1+end]
		if !plain(name) || last != "" && name <= last {
			return false
		}
		last = name
		if s, ok = cutScalar(s[end+3:]); !ok {
			return false
		}
		if s == "}" {
			return true
		}
		s, ok = strings.CutPrefix(s, ",")
	}
	return false
}

// cutScalar returns the rest of s after a scalar in normal form.
func cutScalar(s string) (rest string, ok bool) {
	for _, word := range []string{"true", "false", "null"} {
		if rest, ok := strings.CutPrefix(s, word); ok {
			return rest, true
		}
	}
	if text, ok := strings.CutPrefix(s, `"`); ok {
		end := strings.IndexByte(text, '"')
		if end < 0 || !plain(text[:end]) {
			return "", false
		}
		return text[end+1:], true
	}
	n := len(s) - len(strings.TrimLeft(s, "-0123456789"))
	number, err := strconv.ParseInt(s[:n], 10, 64)
	if err != nil || strconv.FormatInt(number, 10) != s[:n] {
		return "", false
	}
	return s[n:], true
}

// plain reports whether the JSON of a string needs no escapes in any encoder.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// appendPlain appends the JSON of a scalar if all encoders agree on it.
func appendPlain(b []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...), true
	case bool:
		return strconv.AppendBool(b, v), true
	case int64:
		return strconv.AppendInt(b, v, 10), true
	case string:
		if plain(v) {
			return append(append(append(b, '"'), v...), '"'), true
		}
	}
	return b, false
}
