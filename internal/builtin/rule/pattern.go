package rule

import (
	"regexp"
	"sync"
)

// Pattern returns a regular expression that is compiled at its first use. There are many, and most
// servers need few: compiling all of them took a millisecond of each start.
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
