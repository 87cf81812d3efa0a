package openapi

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// appendYAML appends the YAML of v, a value that appendJSON takes, and a newline. A document has
// a hundred thousand such texts of a word or two. A general encoder takes far longer for them
// than for all the rest.
func appendYAML(dst []byte, v any) []byte {
	return appendBlock(dst, plainValue(v), 0)
}

// plainValue returns a value under construction as decoded JSON.
func plainValue(v any) any {
	switch v := v.(type) {
	case raw:
		if n := len(v); n > 1 && v[0] == '"' && v[n-1] == '"' && bytes.IndexByte(v, '\\') < 0 {
			return string(v[1 : n-1])
		}
		var out any
		if err := utiljson.Unmarshal(v, &out); err != nil {
			panic(fmt.Sprintf("openapi: a part of OpenAPI is no JSON: %v", err))
		}
		return out
	case fields:
		return map[string]any(v)
	case []fields:
		return anyList(v)
	case []string:
		return anyList(v)
	case []raw:
		return anyList(v)
	}
	return v
}

func anyList[T any](list []T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// appendBlock appends a value that starts in the current line and continues with an indentation
// of blanks.
func appendBlock(dst []byte, v any, blanks int) []byte {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			return appendMap(dst, v, blanks)
		}
		dst = append(dst, "{}"...)
	case []any:
		if len(v) > 0 {
			return appendItems(dst, v, blanks)
		}
		dst = append(dst, "[]"...)
	case string:
		dst = appendText(dst, v)
	default:
		dst = appendJSON(dst, v) // The same as in JSON.
	}
	return append(dst, '\n')
}

func appendMap(dst []byte, m map[string]any, blanks int) []byte {
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = appendBlanks(dst, blanks)
		}
		dst = append(appendText(dst, name), ':')
		v := plainValue(m[name])
		switch inside := v.(type) {
		case map[string]any:
			if len(inside) > 0 {
				dst = appendBlanks(append(dst, '\n'), blanks+2)
				dst = appendMap(dst, inside, blanks+2)
				continue
			}
		case []any:
			if len(inside) > 0 {
				dst = appendBlanks(append(dst, '\n'), blanks)
				dst = appendItems(dst, inside, blanks)
				continue
			}
		}
		dst = appendBlock(append(dst, ' '), v, blanks)
	}
	return dst
}

func appendItems(dst []byte, list []any, blanks int) []byte {
	for i, v := range list {
		if i > 0 {
			dst = appendBlanks(dst, blanks)
		}
		dst = appendBlock(append(dst, "- "...), plainValue(v), blanks+2)
	}
	return dst
}

func appendBlanks(dst []byte, n int) []byte {
	for range n {
		dst = append(dst, ' ')
	}
	return dst
}

// appendText appends a string: plain if no YAML reader, old or new, misreads it, else quoted.
func appendText(dst []byte, s string) []byte {
	if isWord(s) {
		return append(dst, s...)
	}
	quoted := true // single quotes have no escapes but their own
	for i := range len(s) {
		quoted = quoted && s[i] >= ' ' && s[i] <= '~'
	}
	if quoted {
		dst = append(dst, '\'')
		dst = append(dst, strings.ReplaceAll(s, "'", "''")...)
		return append(dst, '\'')
	}
	// A JSON string in double quotes means the same in YAML, but YAML does not allow every
	// character unescaped.
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < ' ' || r > '~' && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff:
			dst = append(dst, '\\', 'u')
			const hex = "0123456789abcdef"
			dst = append(dst, hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		default:
			dst = append(dst, string(r)...)
		}
	}
	return append(dst, '"')
}

// isWord reports whether a string begins with a letter, contains no YAML syntax, and is not a
// YAML keyword.
func isWord(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c != '-' && c != '_' && c != '.' && c != '/' && (c < '0' || c > '9')) {
			return false
		}
	}
	switch len(s) {
	case 0:
		return false
	case 1, 2, 3, 4, 5:
		switch strings.ToLower(s) {
		case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
			return false
		}
	}
	return true
}
