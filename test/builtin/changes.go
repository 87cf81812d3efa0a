package builtin

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/builtin/corpus"
)

//go:embed changes/*.yaml
var changesFiles embed.FS

// Changes are writes that no mutation covers: several fields at once, a value that is hard to guess,
// or an invalid object in the store. Every run includes all.
type Changes struct {
	Of    string           // ID of a kind, and the name of an object of the corpus
	By    string           // "create" if empty; "update", "update status"...
	Given map[string]any   // by path, fields of the object before; an update finds them stored, unvalidated
	With  map[string]any   // by path, fields of all writes
	Send  []map[string]any // by path, fields of each write; null removes
}

// ReadChanges reads the files in changes.
func ReadChanges() ([]Changes, error) {
	return corpus.ReadYAML[Changes](changesFiles, "changes")
}

// changed returns the sets of a kind from changes.
func (k *Kind) changed(t testing.TB, s *Server, corpus []Object, all []Changes) (out []Set) {
	t.Helper()
	for _, c := range all {
		id, name, _ := strings.Cut(c.Of, " ")
		if id != k.ID() {
			continue
		}
		i := slices.IndexFunc(corpus, func(o Object) bool { return nameOf(o) == name })
		if i < 0 {
			t.Fatalf("changes: the corpus has no %s", c.Of)
		}
		subresource := strings.TrimSpace(strings.TrimPrefix(c.By, "update"))
		if s != nil && !s.Serves(k, subresource) {
			continue
		}
		set := Set{Kind: k, Operation: "create", from: corpus[i]}
		if c.By != "" {
			set.Operation, set.subresource, set.from = c.By, subresource, k.old(t, corpus[i], i)
		}
		for _, m := range mutationsOf(t, c.Given) {
			if set.from = m.Apply(set.from); set.from == nil {
				t.Fatalf("changes: %s has no %s", c.Of, showPath(m.Path))
			}
		}
		if c.By != "" {
			if set.old = k.normal(set.from); set.old == nil {
				t.Fatalf("changes: %s cannot be read with %v", c.Of, c.Given)
			}
			set.from = set.old
		}
		for _, send := range c.Send {
			set.fixed = append(set.fixed, append(mutationsOf(t, c.With), mutationsOf(t, send)...))
		}
		out = append(out, set)
	}
	return out
}

// mutationsOf returns the mutations of a document, sorted by path.
func mutationsOf(t testing.TB, changes map[string]any) (out []Mutation) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		at, err := parsePath(path)
		if err != nil {
			t.Fatalf("changes: %v", err)
		}
		m := Mutation{Path: at, Value: changes[path]}
		if m.Value == nil {
			m.Value = removed{}
		}
		if m.Value, err = made(m.Value); err != nil {
			t.Fatalf("changes: %s: %v", path, err)
		}
		out = append(out, m)
	}
	return out
}

// parsePath is the inverse of showPath.
func parsePath(s string) (out []any, err error) {
	for rest := s; rest != ""; {
		switch {
		case strings.HasPrefix(rest, `["`):
			quoted, err := strconv.QuotedPrefix(rest[1:])
			if err != nil || !strings.HasPrefix(rest[1+len(quoted):], "]") {
				return nil, fmt.Errorf("path %s", s)
			}
			key, _ := strconv.Unquote(quoted)
			out, rest = append(out, key), rest[len(quoted)+2:]
		case rest[0] == '[':
			index, after, _ := strings.Cut(rest[1:], "]")
			i, err := strconv.Atoi(index)
			if err != nil {
				return nil, fmt.Errorf("path %s: %w", s, err)
			}
			out, rest = append(out, i), after
		default:
			rest = strings.TrimPrefix(rest, ".")
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			out, rest = append(out, rest[:end]), rest[end:]
		}
	}
	return out, nil
}

// normal returns an object as it would be stored, valid or not; nil if it does not decode.
func (k *Kind) normal(o Object) Object {
	obj, err := k.decode(o)
	if err != nil {
		return nil
	}
	out, err := k.stored(obj)
	if err != nil {
		return nil
	}
	return out
}

// made replaces descriptions in a document by their values:
//
//	{repeat: a, times: 300}              a long string
//	{many: x, times: 65}                 a list of values with different names
//	{keys: x, times: 33}                 a map of that many keys
//	{json: [1]}                          a value as text
//	{time: -10m}                         a time, relative to the start
//	{join: [a, b]}, {base64: text}       concatenated texts, and base64
//	{certificate: {...}}, {request: ...} see wish
func made(v any) (any, error) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			x, err := made(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = x
		}
	case Object:
		for name, make := range makers() {
			if arg, ok := v[name]; ok && (len(v) == 1 || v["times"] != nil) {
				return make(arg, v)
			}
		}
		for k := range v {
			x, err := made(v[k])
			if err != nil {
				return nil, err
			}
			v[k] = x
		}
	}
	return v, nil
}

// A maker makes a value from the argument under its name.
type maker func(arg any, all Object) (any, error)

// makers are all makers by name.
func makers() map[string]maker {
	out := map[string]maker{
		"repeat": func(arg any, all Object) (any, error) {
			return strings.Repeat(arg.(string), int(all["times"].(float64))), nil
		},
		"many": func(arg any, all Object) (any, error) {
			one, err := made(arg)
			return many(one, int(all["times"].(float64))), err
		},
		"keys": func(arg any, all Object) (any, error) {
			one, err := made(arg)
			out := Object{}
			for i := range int(all["times"].(float64)) {
				out["k"+strconv.Itoa(i)] = one
			}
			return out, err
		},
		"json": func(arg any, _ Object) (any, error) {
			data, err := json.Marshal(arg)
			return string(data), err
		},
	}
	maps.Copy(out, wishes())
	return out
}
