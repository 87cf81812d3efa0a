// Package recording writes down what an API server tells clients of its kinds, as text that
// two servers can be compared by: discovery, columns of Tables, field selectors, and OpenAPI.
//
// It asks a server as any client does, and knows nothing of how one answers. What a
// kube-apiserver said is kept beside the built-in kinds, in testdata; for another version of
// Kubernetes it is made anew, and its diff says what is to be done. Texts that come with the
// Go types are not in it.
package recording

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// A Recording is what one server says, in blocks with a subject each.
type Recording []*Block

// A Block is what is said of one subject: a group, a resource, a subresource, a type.
type Block struct {
	Subject string
	Facts   []string
	// Operations are those of OpenAPI, with placeholders for the names of the subject,
	// so that those of many subjects are the same.
	Operations []string
}

const (
	alike = "\toperations as "
	own   = "\toperations"
)

// Write writes the blocks in their order. Operations that an earlier block has, or one of
// another recording, are not repeated.
func (r Recording) Write(w io.Writer, other Recording) error {
	first := map[string]string{}
	for _, b := range other {
		if all := strings.Join(b.Operations, "\n"); first[all] == "" {
			first[all] = b.Subject
		}
	}
	out := bufio.NewWriter(w)
	for _, b := range r {
		fmt.Fprintln(out, b.Subject)
		for _, fact := range b.Facts {
			fmt.Fprintf(out, "\t%s\n", fact)
		}
		if len(b.Operations) == 0 {
			continue
		}
		all := strings.Join(b.Operations, "\n")
		if earlier, ok := first[all]; ok {
			fmt.Fprintf(out, "%s%s\n", alike, earlier)
			continue
		}
		first[all] = b.Subject
		fmt.Fprintln(out, own)
		for _, o := range b.Operations {
			fmt.Fprintf(out, "\t\t%s\n", o)
		}
	}
	return out.Flush()
}

// Read reads what Write has written with the same other recording.
func Read(text string, other Recording) (Recording, error) {
	var r Recording
	of := map[string]*Block{}
	for _, b := range other {
		of[b.Subject] = b
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasPrefix(line, "\t") {
			b := &Block{Subject: line}
			of[line] = b
			r = append(r, b)
			continue
		}
		if len(r) == 0 {
			return nil, fmt.Errorf("%q has no subject", line)
		}
		b := r[len(r)-1]
		if earlier, ok := strings.CutPrefix(line, alike); ok {
			if of[earlier] == nil {
				return nil, fmt.Errorf("%s is as %s, which is not there", b.Subject, earlier)
			}
			b.Operations = of[earlier].Operations
		} else if operation, ok := strings.CutPrefix(line, "\t\t"); ok {
			b.Operations = append(b.Operations, operation)
		} else if line != own {
			b.Facts = append(b.Facts, line[1:])
		}
	}
	return r, nil
}

// Only returns the blocks whose subjects are wanted.
func (r Recording) Only(want func(subject string) bool) Recording {
	return slices.DeleteFunc(slices.Clone(r), func(b *Block) bool { return !want(b.Subject) })
}

// Has reports whether something is said of a subject.
func (r Recording) Has(subject string) bool {
	return slices.ContainsFunc(r, func(b *Block) bool { return b.Subject == subject })
}

// Differences returns what only one of two recordings has, a line each: that which
// theirs has behind "-", and ours behind "+", both after the subject. The last line is about
// the order of subjects that both have, if that differs.
func Differences(theirs, ours Recording) []string {
	var out []string
	said := func(r Recording) map[string]*Block {
		m := map[string]*Block{}
		for _, b := range r {
			m[b.Subject] = b
		}
		return m
	}
	t, o := said(theirs), said(ours)
	for _, subject := range slices.Sorted(maps.Keys(union(t, o))) {
		switch {
		case t[subject] == nil:
			out = append(out, "+ "+subject)
		case o[subject] == nil:
			out = append(out, "- "+subject)
		default:
			for _, line := range without(t[subject].lines(), o[subject].lines()) {
				out = append(out, "- "+subject+": "+line)
			}
			for _, line := range without(o[subject].lines(), t[subject].lines()) {
				out = append(out, "+ "+subject+": "+line)
			}
		}
	}
	both := func(subject string) bool { return t[subject] != nil && o[subject] != nil }
	theirs, ours = theirs.Only(both), ours.Only(both)
	for i, b := range theirs {
		if b.Subject != ours[i].Subject {
			return append(out, "- "+b.Subject+" comes before "+ours[i].Subject)
		}
	}
	return out
}

func (b *Block) lines() []string { return slices.Concat(b.Facts, b.Operations) }

func union(a, b map[string]*Block) map[string]bool {
	out := map[string]bool{}
	for _, m := range []map[string]*Block{a, b} {
		for subject := range m {
			out[subject] = true
		}
	}
	return out
}

func without(lines, others []string) []string {
	return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return slices.Contains(others, line) })
}

// mark is a short name for a text that is not to be read.
func mark(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}
