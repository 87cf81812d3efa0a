package front

import (
	"fmt"
	"strings"
)

// escape makes the key of an extra a valid part of a header name: "%" and bytes that a header
// name cannot have are percent-encoded.
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

// inName reports whether a header name may contain a byte.
func inName(b byte) bool {
	switch {
	case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9':
		return true
	default:
		return strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
	}
}
