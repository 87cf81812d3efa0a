// Package recording records the API surface of a server as text, so that two servers can be
// compared: discovery, columns of Tables, field selectors, and OpenAPI.
//
// It sends requests like any client, and does not know the implementation. The recording of
// kube-apiserver is in testdata, beside the built-in kinds. For another version of Kubernetes it is
// recorded again, and the diff shows the necessary changes. Texts from Go types are not in it.
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

// A Recording is the record of one server, in blocks with a subject each.
type Recording []*Block

// A Block is the record of one subject: a group, a resource, a subresource, a type.
type Block struct {
	Subject string
	Facts   []string
	// Operations are OpenAPI operations, with placeholders for the names of the subject, so that
	// those of many subjects are equal.
	Operations []string
}

const (
	alike = "\toperations as "
	own   = "\toperations"
)

// Write writes the blocks in their order. It omits operations that an earlier block, or one of
// another recording, has.
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

// Read parses the output of Write with the same other recording.
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

// Only returns the blocks of the wanted subjects.
func (r Recording) Only(want func(subject string) bool) Recording {
	return slices.DeleteFunc(slices.Clone(r), func(b *Block) bool { return !want(b.Subject) })
}

// Has reports whether there is a block of a subject.
func (r Recording) Has(subject string) bool {
	return slices.ContainsFunc(r, func(b *Block) bool { return b.Subject == subject })
}

// Differences returns the lines that only one of two recordings has, each after its subject and "-"
// for theirs or "+" for ours. If the order of common subjects differs, the last line says so.
func Differences(theirs, ours Recording) []string {
	var out []string
	blocks := func(r Recording) map[string]*Block {
		m := map[string]*Block{}
		for _, b := range r {
			m[b.Subject] = b
		}
		return m
	}
	t, o := blocks(theirs), blocks(ours)
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

// mark returns a short hash of a text.
func mark(text string, digits int) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])[:digits]
}
