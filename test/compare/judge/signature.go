package judge

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// A Signature groups differences.
type Signature struct {
	Request  string // kind of request
	Resource string
	Place    string
	Theirs   string
	Ours     string
}

// Signature returns the signature of a difference between the responses to a request.
func (d Difference) Signature(s wire.Step) Signature {
	return Signature{Request: s.Kind, Resource: s.Resource, Place: Shape(d.Place), Theirs: d.shapes[0], Ours: d.shapes[1]}
}

func (s Signature) String() string {
	return fmt.Sprintf("request  %s\nresource %s\nplace    %s\ntheirs   %s\nours     %s", s.Request, s.Resource, s.Place, s.Theirs, s.Ours)
}

// Known is the list of known differences.
type Known []*Entry

// ReadKnown reads the list. Blank lines separate its entries; a line is a keyword and its value, and a
// line that begins with # is a comment:
//
//	request  post
//	resource any
//	place    code
//	theirs   500 InternalError: …
//	ours     400 BadRequest: …
//	often    100
//	because  a new object has none
//
// All values must be equal to those of the difference. Requests, resources and places may be lists,
// separated by commas; the resource may also be "any". "any patch", "any apply", "any put", "any
// post", "any list" and "any write" stand for all kinds of requests with that verb.
//
// The text of a side may be a pattern, which covers a class of differences: a regular expression
// between slashes, for the whole text of that side. A group in the pattern of one side must match the
// same text as that group of the other:
//
//	theirs   /500 <nil>: (unknown patch type: .*)/
//	ours     /422 Invalid: (.*)/
//
// The place may be a pattern, too. For "any" resource, no pattern may match every message of a code:
// the message tells a known difference from a new one. A list has at most 40 entries.
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

// mostKnown is the maximal number of entries in a list.
const mostKnown = 40

// Match returns the entry of a known difference and counts it, or nil.
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

// Gone returns the entries that did not occur although enough of their requests were sent.
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
