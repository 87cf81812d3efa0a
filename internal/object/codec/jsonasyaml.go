package codec

import (
	"strings"
	"unicode/utf8"
)

// sameAsJSON reports whether data is JSON that YAML decodes to the same object, as nearly all
// JSON in YAML requests is. It returns false in doubt: for numbers other than short integers,
// most escapes, tabs between values, and keys with another meaning in YAML.
func sameAsJSON(data []byte) bool {
	f := flow{s: string(data)}
	f.space()
	if !f.next('{') || !f.object() {
		return false
	}
	f.space()
	return f.pos == len(f.s)
}

// A flow parses the style that YAML shares with JSON.
type flow struct {
	s     string
	pos   int
	depth int
}

const (
	maxFlowDepth = 100
	maxFlowKey   = 500 // the limit in YAML
	maxDigits    = 15
)

func (f *flow) space() {
	for f.pos < len(f.s) && (f.s[f.pos] == ' ' || f.s[f.pos] == '\n') {
		f.pos++
	}
}

func (f *flow) next(c byte) bool {
	if f.pos < len(f.s) && f.s[f.pos] == c {
		f.pos++
		return true
	}
	return false
}

// object parses an object after its brace.
func (f *flow) object() bool {
	return f.items('}', func() bool {
		from := f.pos
		if !f.next('"') || !f.text() {
			return false
		}
		key := f.s[from+1 : f.pos-1]
		if key == "" || key == "<<" || len(key) > maxFlowKey || !f.next(':') {
			return false
		}
		f.space()
		return f.value()
	})
}

// items parses a list of items up to end, after the opening bracket.
func (f *flow) items(end byte, item func() bool) bool {
	if f.depth++; f.depth > maxFlowDepth {
		return false
	}
	defer func() { f.depth-- }()
	f.space()
	if f.next(end) {
		return true
	}
	for {
		if !item() {
			return false
		}
		f.space()
		if f.next(end) {
			return true
		}
		if !f.next(',') {
			return false
		}
		f.space()
	}
}

func (f *flow) value() bool {
	switch {
	case f.next('"'):
		return f.text()
	case f.next('{'):
		return f.object()
	case f.next('['):
		return f.items(']', f.value)
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(f.s[f.pos:], word) {
			f.pos += len(word)
			return f.ended()
		}
	}
	return f.number() && f.ended()
}

// ended reports whether a word or number ends here.
func (f *flow) ended() bool {
	if f.pos == len(f.s) {
		return false
	}
	switch f.s[f.pos] {
	case ',', '}', ']', '\n', ' ':
		return true
	}
	return false
}

func (f *flow) number() bool {
	minus := f.next('-')
	from := f.pos
	for f.pos < len(f.s) && f.s[f.pos] >= '0' && f.s[f.pos] <= '9' {
		f.pos++
	}
	n := f.pos - from
	return n > 0 && n <= maxDigits && (f.s[from] != '0' || n == 1 && !minus)
}

// text parses a string after its quote.
func (f *flow) text() bool {
	for f.pos < len(f.s) {
		c := f.s[f.pos]
		f.pos++
		switch {
		case c == '"':
			return true
		case c == '\\':
			if !f.escape() {
				return false
			}
		case c < ' ' || c == 0x7f:
			return false
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(f.s[f.pos-1:])
			// U+FFFD may be the result of an invalid byte.
			if r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r >= 0xfffd && r <= 0xffff {
				return false
			}
			f.pos += size - 1
		}
	}
	return false
}

func (f *flow) escape() bool {
	if f.pos == len(f.s) {
		return false
	}
	f.pos++
	switch f.s[f.pos-1] {
	case '"', '\\', 'n', 't', 'r':
		return true
	case 'u': // of plain characters, as Go escapes those with a meaning in HTML
		if len(f.s)-f.pos < 4 || f.s[f.pos:f.pos+2] != "00" {
			return false
		}
		high, low := f.s[f.pos+2], f.s[f.pos+3]
		f.pos += 4
		return high >= '2' && high <= '6' && (low >= '0' && low <= '9' || low >= 'a' && low <= 'f' || low >= 'A' && low <= 'F')
	}
	return false
}
