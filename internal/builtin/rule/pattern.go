package rule

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled when it is first asked for. There
// are many, and most servers never need most of them: compiling all took a millisecond of
// each start.
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
