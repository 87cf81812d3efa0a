package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/anykind/anykind/test/compare/wire"
)

// attempts limits the number of attempts to shorten a sequence, and effort their time: a difference in
// a watch takes seconds each time.
const (
	attempts = 40
	effort   = 15 * time.Second
)

// reduce returns the shortest sequence that it finds for which fails is still true: first it removes
// steps, then fields in the body of the last one.
func reduce(s wire.Sequence, last int, fails func(wire.Sequence) bool) wire.Sequence {
	left, began := attempts, time.Now()
	still := func(shorter wire.Sequence) bool {
		left--
		return left >= 0 && time.Since(began) < effort && fails(shorter)
	}
	if cut := s; last+1 < len(s.Steps) {
		cut.Steps = slices.Clone(s.Steps[:last+1])
		if still(cut) {
			s = cut
		}
	}
	for i := len(s.Steps) - 2; i >= 0; i-- {
		if shorter := s.Without(i); still(shorter) {
			s = shorter
		}
	}
	at := len(s.Steps) - 1
	for _, smaller := range bodies(s.Steps[at].Body) {
		candidate := s
		candidate.Steps = slices.Clone(s.Steps)
		body := smaller(s.Steps[at].Body)
		if body == nil {
			continue
		}
		candidate.Steps[at].Body = body
		if still(candidate) {
			s = candidate
		}
	}
	return s
}

// bodies returns functions that remove one field of a body each, the outer ones first.
func bodies(body []byte) []func([]byte) []byte {
	paths := fields(parse(body), nil)
	slices.SortStableFunc(paths, func(a, b []string) int { return len(a) - len(b) })
	var out []func([]byte) []byte
	for _, path := range paths {
		out = append(out, func(now []byte) []byte {
			tree := parse(now)
			if !cut(tree, path) {
				return nil
			}
			smaller, err := json.Marshal(tree)
			if err != nil {
				return nil
			}
			return smaller
		})
	}
	return out
}

// parse returns a body as a tree, nil if encoding the tree would change the body.
func parse(body []byte) any {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var tree any
	if d.Decode(&tree) != nil {
		return nil
	}
	again, err := json.Marshal(tree)
	if err != nil || len(again) != len(body) && bytes.IndexByte(body, '&') < 0 && bytes.IndexByte(body, '<') < 0 {
		return nil
	}
	return tree
}

// fields returns the paths of the fields in a tree.
func fields(tree any, path []string) [][]string {
	m, ok := tree.(map[string]any)
	if !ok {
		return nil
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	var out [][]string
	for _, name := range names {
		at := append(slices.Clone(path), name)
		out = append(append(out, at), fields(m[name], at)...)
	}
	return out
}

// cut removes a field from a tree and reports whether it existed.
func cut(tree any, path []string) bool {
	m, ok := tree.(map[string]any)
	if !ok {
		return false
	}
	if len(path) > 1 {
		return cut(m[path[0]], path[1:])
	}
	_, ok = m[path[0]]
	delete(m, path[0])
	return ok
}
