package gate

import (
	_ "embed"
	"strings"
	"sync"
)

// idleTable has the gates that do not change this server. A line that ends with a colon is the reason for
// the gates below it, one of them in a line.
//
//go:embed idle.txt
var idleTable string

var idle = sync.OnceValue(func() map[Name]string {
	out := map[Name]string{}
	reason := ""
	for line := range strings.Lines(idleTable) {
		line = strings.TrimSpace(line)
		text, isReason := strings.CutSuffix(line, ":")
		switch {
		case line == "" || line[0] == '#':
		case isReason:
			reason = text
		default:
			out[Name(line)] = reason
		}
	}
	return out
})

// ofOther begins the reason of a gate of another program.
const ofOther = "a gate of "

// IdleReason returns the reason why a gate does not change this server, or "" for one that does.
func IdleReason(n Name) string { return idle()[n] }
