package codec

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/object"
)

// decodeJSON decodes a JSON object, or null. Its result equals that of sigs.k8s.io/json: the
// parser here handles well-formed documents without duplicate fields, and leaves the others,
// which are rare, to that library. So all errors come from Kubernetes' library.
func decodeJSON(data []byte) (t object.Tree, duplicates []string, err error) {
	p := parser{s: string(data)}
	if t, ok := p.document(); ok {
		return t, nil, nil
	}
	strict, err := kjson.UnmarshalStrict(data, &t, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range strict {
		duplicates = append(duplicates, e.Error())
	}
	return t, duplicates, nil
}

// A parser parses its own copy of a document; the strings that it returns share that copy if
// possible. A method reports whether it found its value. After false the parser must not be used.
type parser struct {
	s     string
	pos   int
	depth int
}

func (p *parser) document() (object.Tree, bool) {
	if p.peek() != '{' {
		return nil, false
	}
	t, ok := p.object()
	return t, ok && p.peek() == 0 && p.pos == len(p.s)
}

// peek skips white space and returns the byte that follows, or 0 at the end.
func (p *parser) peek() byte {
	for ; p.pos < len(p.s); p.pos++ {
		switch c := p.s[p.pos]; c {
		case ' ', '\n', '\t', '\r':
		default:
			return c
		}
	}
	return 0
}

// take skips white space and consumes c if it is next.
func (p *parser) take(c byte) bool {
	if p.peek() != c || c == 0 {
		return false
	}
	p.pos++
	return true
}

func (p *parser) value() (any, bool) {
	switch c := p.peek(); c {
	case '"':
		return p.str()
	case '{':
		return p.object()
	case '[':
		return p.array()
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	default:
		return p.number()
	}
}

func (p *parser) word(w string) bool {
	if !strings.HasPrefix(p.s[p.pos:], w) {
		return false
	}
	p.pos += len(w)
	return true
}

func (p *parser) enter() bool {
	p.depth++
	p.pos++
	return p.depth <= object.MaxDepth
}

func (p *parser) leave() bool {
	p.depth--
	p.pos++
	return true
}

// object consumes an object without duplicate keys.
func (p *parser) object() (object.Tree, bool) {
	if !p.enter() {
		return nil, false
	}
	t := object.Tree{}
	if p.peek() == '}' {
		return t, p.leave()
	}
	for n := 1; ; n++ {
		if p.peek() != '"' {
			return nil, false
		}
		key, ok := p.text()
		if !ok || !p.take(':') {
			return nil, false
		}
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		if t[key] = v; len(t) != n {
			return nil, false // duplicate key
		}
		switch p.peek() {
		case ',':
			p.pos++
		case '}':
			return t, p.leave()
		default:
			return nil, false
		}
	}
}

func (p *parser) array() (any, bool) {
	if !p.enter() {
		return nil, false
	}
	list := []any{}
	if p.peek() == ']' {
		return list, p.leave()
	}
	for {
		v, ok := p.value()
		if !ok {
			return nil, false
		}
		list = append(list, v)
		switch p.peek() {
		case ',':
			p.pos++
		case ']':
			return list, p.leave()
		default:
			return nil, false
		}
	}
}

// number consumes a number: an int64 if it is an integer in range, else a float64.
func (p *parser) number() (any, bool) {
	start, whole := p.pos, true
	if p.at('-') {
		p.pos++
	}
	if p.at('0') {
		p.pos++
	} else if !p.digits() {
		return nil, false
	}
	if p.at('.') {
		whole = false
		p.pos++
		if !p.digits() {
			return nil, false
		}
	}
	if p.at('e') || p.at('E') {
		whole = false
		p.pos++
		if p.at('-') || p.at('+') {
			p.pos++
		}
		if !p.digits() {
			return nil, false
		}
	}
	literal := p.s[start:p.pos]
	if whole {
		if i, err := strconv.ParseInt(literal, 10, 64); err == nil {
			return i, true
		}
	}
	f, err := strconv.ParseFloat(literal, 64)
	return f, err == nil
}

func (p *parser) at(c byte) bool { return p.pos < len(p.s) && p.s[p.pos] == c }

// digits consumes digits, at least one.
func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.s) && p.s[p.pos]-'0' <= 9 {
		p.pos++
	}
	return p.pos > start
}

func (p *parser) str() (any, bool) {
	s, ok := p.text()
	return s, ok
}

// plain marks the bytes of a string that stand for themselves and are not part of a multi-byte
// character.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\'
	}
	return t
}()

// text consumes a string, whose opening quote is next, and returns its value.
func (p *parser) text() (string, bool) {
	s, start := p.s, p.pos+1
	i := start
	for {
		for i < len(s) && plain[s[i]] {
			i++
		}
		if i >= len(s) {
			return "", false
		}
		switch c := s[i]; {
		case c == '"':
			p.pos = i + 1
			return s[start:i], true
		case c < utf8.RuneSelf:
			return p.unquote(start, i)
		}
		_, size := utf8.DecodeRuneInString(s[i:])
		if size == 1 {
			return p.unquote(start, i)
		}
		i += size
	}
}

// unquote continues a string that starts at start and needs unescaping from i on.
func (p *parser) unquote(start, i int) (string, bool) {
	s := p.s
	out := append(make([]byte, 0, i-start+64), s[start:i]...)
	for {
		run := i
		for i < len(s) && plain[s[i]] {
			i++
		}
		out = append(out, s[run:i]...)
		if i >= len(s) {
			return "", false
		}
		switch c := s[i]; {
		case c == '"':
			p.pos = i + 1
			return string(out), true
		case c == '\\':
			var ok bool
			if out, i, ok = unescape(out, s, i); !ok {
				return "", false
			}
		case c < ' ':
			return "", false
		default:
			// Bytes that are not UTF-8 become U+FFFD, byte by byte.
			r, size := utf8.DecodeRuneInString(s[i:])
			out = utf8.AppendRune(out, r)
			i += size
		}
	}
}

// unescape appends the value of the escape at i, and returns its end.
func unescape(out []byte, s string, i int) ([]byte, int, bool) {
	if i+1 >= len(s) {
		return out, i, false
	}
	switch c := s[i+1]; c {
	case '"', '\\', '/':
		return append(out, c), i + 2, true
	case 'b':
		return append(out, '\b'), i + 2, true
	case 'f':
		return append(out, '\f'), i + 2, true
	case 'n':
		return append(out, '\n'), i + 2, true
	case 'r':
		return append(out, '\r'), i + 2, true
	case 't':
		return append(out, '\t'), i + 2, true
	case 'u':
		r, ok := hex4(s, i)
		if !ok {
			return out, i, false
		}
		i += 6
		if utf16.IsSurrogate(r) {
			// A lone surrogate, or an invalid pair, is U+FFFD.
			second, _ := hex4(s, i)
			if r = utf16.DecodeRune(r, second); r != utf8.RuneError {
				i += 6
			}
		}
		return utf8.AppendRune(out, r), i, true
	}
	return out, i, false
}

// hex4 decodes the escape \uXXXX at i.
func hex4(s string, i int) (rune, bool) {
	if i+6 > len(s) || s[i] != '\\' || s[i+1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[i+2:i+6], 16, 16)
	return rune(n), err == nil
}
