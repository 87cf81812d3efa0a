package rest

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits for warnings in runes: for all together, and for each once the total is exceeded.
// Clients accept smaller headers than requests may be.
const (
	maxWarnings = 4 << 10
	maxWarning  = 256
)

// warnings are the warnings of an answer, each sent once.
type warnings struct {
	header http.Header
	known  map[string]bool
	all    []string // until they are truncated
	runes  int
	cut    bool // each is truncated, and some may be missing
}

// add adds a warning. When all together become too long, the earlier ones are truncated.
func (w *warnings) add(message string) {
	if message == "" || w.known[message] || w.full() {
		return
	}
	if w.known == nil {
		w.known = map[string]bool{}
	}
	w.known[message] = true
	if w.cut {
		w.tell(message)
		return
	}
	w.all = append(w.all, message)
	if w.runes+utf8.RuneCountInString(message) <= maxWarnings {
		w.tell(message)
		return
	}
	w.header.Del("Warning")
	w.runes, w.cut = 0, true
	for _, m := range w.all {
		w.tell(m)
	}
	w.all = nil
}

func (w *warnings) full() bool { return w.cut && w.runes >= maxWarnings }

// tell writes a warning header. It omits characters that a header cannot contain.
func (w *warnings) tell(message string) {
	if w.cut {
		message = firstRunes(message, maxWarning)
	}
	if !utf8.ValidString(message) || strings.ContainsFunc(message, unicode.IsControl) {
		return
	}
	w.runes += utf8.RuneCountInString(message)
	w.header.Add("Warning", "299 - "+quote(message))
}

// firstRunes returns the first n runes of s.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// quote returns a message as a quoted string of a header.
func quote(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s) + `"`
}
