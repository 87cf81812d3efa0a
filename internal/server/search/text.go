package search

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/anykind/anykind/internal/object"
)

// maxText is the number of bytes of a value that are searched.
const maxText = 200

// lastApplied is an annotation with a copy of the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// separator precedes every text in a chunk. No text and no word contains it.
const separator = 0

// Words returns the words of a query, folded.
func Words(query string) []string { return strings.Fields(string(fold(nil, query))) }

// fold appends a text in lower case. It folds ASCII only, so offsets in the result are those in s.
func fold(dst []byte, s string) []byte {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c == separator:
			c = ' '
		}
		dst = append(dst, c)
	}
	return dst
}

// cut returns the searched part of a value.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// A leaf is a text of an object, and the part of it that is searched. It is valid during the call that gets it.
type leaf struct {
	path     object.Path
	text     string
	searched string
	label    bool
}

// leaves calls visit for the searched texts of an object other than its name, namespace and kind, until it
// returns false. Of Secrets, these are the labels and the type: other fields may have the data, or a copy. JSON
// that is damaged has the texts before the damage.
func leaves(data []byte, secret bool, visit func(leaf) bool) {
	_ = object.Leaves(data, func(p object.Path) bool { return searched(p, secret) }, func(p object.Path, value string) bool {
		l := leaf{path: p, text: value}
		switch {
		case len(p) == 3 && p[0].Key == "metadata" && (p[1].Key == "labels" || p[1].Key == "annotations"):
			if l.label = p[1].Key == "labels"; !l.label && len(value) > maxText {
				return true
			}
			l.text = pair(p[2].Key, value)
			l.searched = l.text
		case value == "" || isTime(value):
			return true
		default:
			l.searched = cut(value)
		}
		return visit(l)
	})
}

// pair returns the text of a label or an annotation.
func pair(key, value string) string { return key + "=" + value }

// searched reports whether the value at a path may have searched texts.
func searched(p object.Path, secret bool) bool {
	switch {
	case len(p) == 1 && secret:
		return p[0].Key == "metadata" || p[0].Key == "type"
	case len(p) == 1:
		return p[0].Key != "apiVersion" && p[0].Key != "kind"
	case p[0].Key != "metadata":
		return true
	case len(p) == 2:
		switch p[1].Key {
		case "name", "namespace", "uid", "resourceVersion", "generation", "managedFields":
			return false
		case "annotations":
			return !secret
		}
	case len(p) == 3:
		return p[1].Key != "annotations" || p[2].Key != lastApplied
	case len(p) == 4:
		return p[1].Key != "ownerReferences" || p[3].Key != "uid"
	}
	return true
}

// isTime reports whether a text has the form 2006-01-02T15:04:05Z, with or without fractions of a second.
func isTime(s string) bool {
	return len(s) >= 20 && s[4] == '-' && s[7] == '-' && s[10] == 'T' && s[13] == ':' && s[16] == ':' && s[len(s)-1] == 'Z'
}

const (
	before = 60  // bytes of a text that are shown before a match
	shown  = 200 // bytes of a text that are shown
)

// excerpt returns the part of a text around the match at an offset, and the place of the match in it.
func excerpt(s string, at, length int) (part string, matched Span) {
	from, to := 0, len(s)
	if len(s) > shown {
		from = max(0, min(at-before, len(s)-shown))
		to = max(from+shown, at+length)
		for !utf8.RuneStart(s[from]) {
			from++
		}
		for to < len(s) && !utf8.RuneStart(s[to]) {
			to++
		}
	}
	head, tail := s[from:at], s[at+length:to]
	if from > 0 {
		head = "…" + head
	}
	if to < len(s) {
		tail += "…"
	}
	matched.Start = object.UTF16Len(head)
	matched.End = matched.Start + object.UTF16Len(s[at:at+length])
	return head + s[at:at+length] + tail, matched
}

// within returns the offset of a folded word in a text, or -1.
func within(text, word string) int {
	var scratch [2 * maxText]byte
	return bytes.Index(fold(scratch[:0], text), []byte(word))
}
