package builtin

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed known.txt
var knownText string

// A Known is a line of known.txt: a class of differences, in which * is any text, and the reason in
// the comment above it. A line that begins with "long " occurs only in a run of all mutations. One
// that begins with "perhaps " depends on random content of the store.
type Known struct {
	Line, Reason string
	Long         bool
	Perhaps      bool
	pattern      *regexp.Regexp
	met          bool
}

// ReadKnown reads known.txt: the lines for tables, or the others. A class without a reason is an
// error.
func ReadKnown(tables bool) ([]*Known, error) {
	var out []*Known
	var reason []string
	fresh := true
	for i, line := range strings.Split(knownText, "\n") {
		switch {
		case strings.TrimSpace(line) == "":
			reason, fresh = nil, true
		case strings.HasPrefix(line, "#"):
			if !fresh {
				reason, fresh = nil, true
			}
			reason = append(reason, strings.TrimSpace(strings.TrimPrefix(line, "#")))
		case len(reason) == 0:
			return nil, fmt.Errorf("known.txt:%d: no reason is given", i+1)
		default:
			fresh = false
			if strings.Contains(line, " table: ") != tables {
				continue
			}
			class, long := strings.CutPrefix(line, "long ")
			class, perhaps := strings.CutPrefix(class, "perhaps ")
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(class), `\*`, ".*") + "$"
			out = append(out, &Known{Line: line, Long: long, Perhaps: perhaps, Reason: strings.Join(reason, " "), pattern: regexp.MustCompile(pattern)})
		}
	}
	return out, nil
}

// Explain sets the reason of each known class of a report.
func (r *Report) Explain(known []*Known) {
	for _, c := range r.Classes {
		for _, k := range known {
			if k.pattern.MatchString(c.Name) {
				c.Known, k.met = k.Reason, true
				break
			}
		}
	}
}
