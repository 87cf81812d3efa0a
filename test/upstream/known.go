package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// An entry is a test that is known to fail, or is not run at all.
type entry struct {
	skip   bool
	owner  string
	reason string
}

// readKnown reads the list of tests that may fail. A line is
//
//	fail|skip TEST OWNER REASON...
//
// and lines that are empty or begin with # say nothing.
func readKnown(path string) (map[string]entry, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := map[string]entry{}
	for i, line := range strings.Split(string(data), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 4 || words[0] != "fail" && words[0] != "skip" {
			return nil, fmt.Errorf("%s:%d: want fail or skip, a test, who owns it and why", path, i+1)
		}
		if _, twice := known[words[1]]; twice {
			return nil, fmt.Errorf("%s:%d: %s is there twice", path, i+1, words[1])
		}
		known[words[1]] = entry{skip: words[0] == "skip", owner: words[2], reason: strings.Join(words[3:], " ")}
	}
	return known, nil
}

// skippedOf returns the tests that are not run, in order.
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
