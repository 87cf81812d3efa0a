package object

import "unicode/utf16"

// UTF16Len returns the number of UTF-16 code units of a text: JavaScript and the Language Server Protocol count these.
func UTF16Len(s string) (n int) {
	for _, r := range s {
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}
