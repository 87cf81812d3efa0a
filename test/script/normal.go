package script

import (
	"regexp"
	"strings"
)

// Normal returns text with everything that differs from run to run replaced by
// a word for it: ages, uids, timestamps, resource versions and the address of
// the server.
func Normal(text string) string {
	for _, r := range replacements() {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	// What kubectl prints with a template need not end its last line; a file does.
	return strings.TrimRight(text, "\n") + "\n"
}

type replacement struct {
	pattern *regexp.Regexp
	with    string
}

func replacements() []replacement {
	return []replacement{
		{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
		{regexp.MustCompile(`X509SHA256=[0-9a-f]{64}`), "X509SHA256=HASH"},
		// YAML writes a timestamp with quotes today and wrote it without.
		{regexp.MustCompile(`"?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b"?`), "TIME"},
		// As describe writes them.
		{regexp.MustCompile(`\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}\b`), "TIME"},
		{regexp.MustCompile(`("?resourceVersion"?: ?)"\d+"`), `${1}"REVISION"`},
		{regexp.MustCompile(`(Resource Version: +)\d+`), "${1}REVISION"},
		{regexp.MustCompile(`https://(127\.0\.0\.1|\[::1\]|localhost):\d+`), "SERVER"},
		// Where a server can be reached, as discovery says it.
		{regexp.MustCompile(`("serverAddress": ?)"[^"]*"`), `${1}"ADDRESS"`},
		// An age stands alone in a column; the blanks after it depend on its length.
		{regexp.MustCompile(`(?m)(^|\s)(?:<invalid>|(?:\d+(?:y|d|h|m|s)){1,2})(?: {2,}|$)`), "${1}AGE   "},
		{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	}
}
