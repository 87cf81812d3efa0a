package judge

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// A Signature is what differences are grouped by.
type Signature struct {
	Request  string // the kind of request
	Resource string
	Place    string
	Theirs   string
	Ours     string
}

// Signature returns that of a difference in the answers to a request.
func (d Difference) Signature(s wire.Step) Signature {
	return Signature{Request: s.Kind, Resource: s.Resource, Place: Shape(d.Place), Theirs: d.shapes[0], Ours: d.shapes[1]}
}

func (s Signature) String() string {
	return fmt.Sprintf("request  %s\nresource %s\nplace    %s\ntheirs   %s\nours     %s", s.Request, s.Resource, s.Place, s.Theirs, s.Ours)
}

// Known is the list of differences that are known.
type Known []*Entry

// ReadKnown reads the list. Its entries have an empty line between them; a line is a
// word and what it says, and a line that begins with # says nothing:
//
//	request  post
//	resource any
//	place    code
//	theirs   500 InternalError: …
//	ours     400 BadRequest: …
//	often    100
//	because  a new object has none
//
// Everything must be equal to what was found. A request may be several, and so may a
// resource and a place, with commas between; the resource may also be "any". "any patch", "any apply",
// "any put", "any post", "any list" and "any write" stand for the kinds of requests that do that.
//
// What one side says may be a pattern, which names a class of differences: a regular
// expression between slashes, for all of what that side says. A group in the pattern of
// one side must be the same text as that group of the other:
//
//	theirs   /500 <nil>: (unknown patch type: .*)/
//	ours     /422 Invalid: (.*)/
//
// The place may be such a pattern, too. For "any" resource, no pattern may match every message of a code: the
// words are what tells a known difference from a new one. A list has at most 40 entries.
func ReadKnown(path string) (Known, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var known Known
	for at, block := range strings.Split(string(data), "\n\n") {
		e, err := parse(block)
		if err != nil {
			return nil, fmt.Errorf("%s: entry %d: %w", path, at+1, err)
		}
		if e == nil {
			continue
		}
		if slices.ContainsFunc(known, func(other *Entry) bool { return other.Signature == e.Signature }) {
			return nil, fmt.Errorf("%s: entry %d is there twice", path, at+1)
		}
		known = append(known, e)
	}
	if len(known) > mostKnown {
		return nil, fmt.Errorf("%s has %d entries, and may have %d: a mend is better than an entry", path, len(known), mostKnown)
	}
	return known, nil
}

// mostKnown is how many entries a list may have.
const mostKnown = 40

// Match returns the entry of a difference and counts it, nil if it is not known.
func (k Known) Match(s Signature) *Entry {
	e := k.find(s)
	if e != nil {
		e.Seen++
	}
	return e
}

func (k Known) find(s Signature) *Entry {
	i := slices.IndexFunc(k, func(e *Entry) bool { return e.has(s) })
	if i < 0 {
		return nil
	}
	return k[i]
}

// Gone returns the entries that were not seen though their requests were sent often
// enough.
func (k Known) Gone(sent map[string]int) Known {
	return slices.DeleteFunc(slices.Clone(k), func(e *Entry) bool {
		times := 0
		for kind, n := range sent {
			if e.asks(kind) {
				times += n
			}
		}
		return e.Seen > 0 || times < e.Often
	})
}

// Has reports whether a signature is in the list.
func (k Known) Has(s Signature) bool { return k.find(s) != nil }
