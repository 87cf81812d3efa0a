package aggregate

import (
	"fmt"
	"strings"
)

// escape makes the key of an extra a part of the name of a header: bytes that may not be there,
// and "%", are written as in a URL.
func escape(key string) string {
	var out strings.Builder
	for i := range len(key) {
		if b := key[i]; b == '%' || !inName(b) {
			fmt.Fprintf(&out, "%%%02X", b)
		} else {
			out.WriteByte(b)
		}
	}
	return out.String()
}

// inName reports whether a byte may be in the name of a header.
func inName(b byte) bool {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		return true
	default:
		return strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
	}
}
