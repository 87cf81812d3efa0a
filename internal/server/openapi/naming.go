package openapi

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names and descriptions of operations, as client generators expect them.

// identifier converts s to a part of an operation id: letters and digits, with capitals at the
// start of words.
func identifier(s string, capital bool) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case !unicode.IsLetter(r) && r != '_' && (i == 0 || !unicode.IsDigit(r)):
			capital = true
		case capital:
			out.WriteRune(unicode.ToUpper(r))
			capital = false
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// capitalized returns a word with a capital first letter.
func capitalized(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

// shortGroup returns the name of a group in operation ids.
func shortGroup(group string) string {
	if group == "" {
		return "core"
	}
	return strings.TrimSuffix(group, ".k8s.io")
}

// tagOf returns the tag of the operations of a group, or of one version of it.
func tagOf(group, version string) string {
	tag := identifier(shortGroup(group), false)
	if version != "" {
		tag += "_" + identifier(version, false)
	}
	return tag
}

// operationPart returns the group and version in the middle of an operation id.
func operationPart(group, version string) string {
	return identifier(shortGroup(group), true) + identifier(version, true)
}

// one returns a kind with its article, or a plural unchanged.
func one(kind string) string {
	switch {
	case strings.HasSuffix(kind, "s") && !strings.HasSuffix(kind, "ss"):
		return kind
	case strings.ContainsRune("aeiouAEIOU", rune(kind[0])):
		return "an " + kind
	default:
		return "a " + kind
	}
}
