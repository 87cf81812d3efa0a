package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
)

// An entry is a test that is known to fail, or is skipped.
type entry struct {
	skip   bool
	owner  string
	reason string
	says   []string
}

// readKnown reads the list of tests that may fail. A line is
//
//	fail|skip TEST OWNER REASON...
//
// A line with fail may be followed by indented ones. Each error of the test has to contain the words
// of one of them:
//
//	says WORDS...
//
// Lines that are empty or begin with # are ignored.
func readKnown(path string) (map[string]entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := map[string]entry{}
	last := ""
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if e, ok := known[last]; ok && words[0] == "says" {
			e.says = append(e.says, strings.Join(words[1:], " "))
			known[last] = e
			continue
		}
		if len(words) < 4 || words[0] != "fail" && words[0] != "skip" {
			return nil, fmt.Errorf("%s:%d: want fail or skip, a test, who owns it and why", path, i+1)
		}
		if _, twice := known[words[1]]; twice {
			return nil, fmt.Errorf("%s:%d: %s is there twice", path, i+1, words[1])
		}
		last = words[1]
		known[last] = entry{skip: words[0] == "skip", owner: words[2], reason: strings.Join(words[3:], " ")}
	}
	return known, nil
}

// otherErrors returns the errors of a test that the entry does not cover.
func (e entry) otherErrors(t *outcome) (other []string) {
	for _, line := range t.lines {
		if !errorLine.MatchString(line) {
			continue
		}
		if !slices.ContainsFunc(e.says, func(words string) bool { return strings.Contains(line, words) }) {
			other = append(other, strings.TrimSpace(line))
		}
	}
	return other
}

// errorLine matches the start of an error of a test.
var errorLine = regexp.MustCompile(`^ +\w+_test\.go:\d+: `)

// skippedOf returns the skipped tests, sorted.
func skippedOf(known map[string]entry) []string {
	var names []string
	for name, e := range known {
		if e.skip {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
