package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed unreachable.txt
var unreachableText string

// An unreachable is a line of unreachable.txt: the group, the function and the prefix of a site's
// text. A line without a text covers all sites of the function. A line with a text does not cover the
// second of two equal sites, which has the suffix #2. A line that begins with "perhaps" may be
// reached, depending on random content of the store.
type unreachable struct {
	line                  string
	perhaps, met, reached bool
}

type unreachables []*unreachable

// readUnreachable reads unreachable.txt. A line without a reason above it is an error.
func readUnreachable() (out unreachables, err error) {
	reason := false
	for i, line := range strings.Split(unreachableText, "\n") {
		switch line = strings.TrimSpace(line); {
		case line == "":
			reason = false
		case strings.HasPrefix(line, "#"):
			reason = true
		case !reason:
			return nil, fmt.Errorf("unreachable.txt:%d: no reason is given", i+1)
		default:
			line, perhaps := strings.CutPrefix(line, "perhaps ")
			out = append(out, &unreachable{line: line, perhaps: perhaps})
		}
	}
	return out, nil
}

func (all unreachables) find(s site) *unreachable {
	for _, u := range all {
		key := s.key()
		named := !strings.Contains(u.line, ": ") || strings.LastIndex(key, " #") == strings.LastIndex(u.line, " #")
		if named && strings.HasPrefix(key, u.line) {
			return u
		}
	}
	return nil
}

func (all unreachables) explains(s site) bool {
	u := all.find(s)
	if u != nil {
		u.met = true
	}
	return u != nil
}

// refute records that a site was reached.
func (all unreachables) refute(s site) {
	if u := all.find(s); u != nil {
		u.reached = true
	}
}

// stale returns the lines that are wrong.
func (all unreachables) stale() (out []string) {
	for _, u := range all {
		if u.reached && !u.perhaps || !u.reached && !u.met {
			out = append(out, u.line)
		}
	}
	return out
}
