package script

import (
	"regexp"
	"strings"
)

// Normal replaces all values that differ between runs by placeholders: ages, uids, timestamps,
// resource versions and the address of the server.
func Normal(text string) string {
	for _, r := range replacements() {
		text = r.pattern.ReplaceAllString(text, r.with)
	}
	// A kubectl template may omit the last line feed; a file has it.
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
		// YAML quotes a timestamp today, and did not before.
		{regexp.MustCompile(`"?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\b"?`), "TIME"},
		// Times in the format of kubectl describe.
		{regexp.MustCompile(`\b[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d [+-]\d{4}\b`), "TIME"},
		{regexp.MustCompile(`("?resourceVersion"?: ?)"\d+"`), `${1}"REVISION"`},
		{regexp.MustCompile(`(Resource Version: +)\d+`), "${1}REVISION"},
		{regexp.MustCompile(`https://(127\.0\.0\.1|\[::1\]|localhost):\d+`), "SERVER"},
		// The address of a server in discovery.
		{regexp.MustCompile(`("serverAddress": ?)"[^"]*"`), `${1}"ADDRESS"`},
		// An age stands alone in a column; the number of blanks after it depends on its length.
		{regexp.MustCompile(`(?m)(^|\s)(?:<invalid>|(?:\d+(?:y|d|h|m|s)){1,2})(?: {2,}|$)`), "${1}AGE   "},
		{regexp.MustCompile(`(?m)[ \t]+$`), ""},
	}
}
