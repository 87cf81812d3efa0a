package rest

import (
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What warnings may take, in runes: all together, and each once that is too little
// for all. A client reads no header that is as large as a request may be.
const (
	maxWarnings = 4 << 10
	maxWarning  = 256
)

// warnings tell the client what is not an error, each once.
type warnings struct {
	header http.Header
	known  map[string]bool
	all    []string // until they are cut
	runes  int
	cut    bool // each is cut, and some may be missing
}

// add tells one. When together they become too long, those that were told are cut.
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

// tell writes one. What a header cannot say is not said.
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

// firstRunes returns what s begins with.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// quote writes a message as the quoted string of a header.
func quote(s string) string {
	return `"` + strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s) + `"`
}
