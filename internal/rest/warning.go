package rest

import (
	"net/http"
	"strconv"
	"strings"
	"unicode"
)

// warn tells the client something that is not an error.
func warn(w http.ResponseWriter, message string) {
	value := `299 - ` + quote(message)
	for _, have := range w.Header()["Warning"] {
		if have == value {
			return
		}
	}
	w.Header().Add("Warning", value)
}

// quote writes a message as the quoted string of a header, without what could
// end the header.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsControl(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
