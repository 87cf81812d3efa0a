package judge

import (
	"fmt"
	"os"
	"slices"
	"strconv"
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

// An Entry is a difference that is known.
type Entry struct {
	Signature     // with lists in place of one request and one resource
	Often     int // how many of its requests are enough to see it
	Because   string
	Seen      int
}

// has reports whether an entry is of a signature.
func (e *Entry) has(s Signature) bool {
	return in(e.Request, s.Request) && (e.Resource == "any" || in(e.Resource, s.Resource)) &&
		e.Place == s.Place && e.Theirs == s.Theirs && e.Ours == s.Ours
}

func in(list, name string) bool {
	return slices.Contains(strings.Split(list, ", "), name)
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
// resource, with commas between; the resource may also be "any".
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
	return known, nil
}

func parse(block string) (*Entry, error) {
	e := &Entry{}
	fields := map[string]*string{"request": &e.Request, "resource": &e.Resource, "place": &e.Place,
		"theirs": &e.Theirs, "ours": &e.Ours, "because": &e.Because, "often": new(string)}
	said := 0
	for line := range strings.SplitSeq(block, "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		field := fields[word]
		if field == nil {
			return nil, fmt.Errorf("%q is no word of an entry", word)
		}
		*field = strings.TrimSpace(rest)
		said++
	}
	if said == 0 {
		return nil, nil
	}
	often, err := strconv.Atoi(*fields["often"])
	if err != nil || often < 1 || e.Because == "" || e.Request == "" || e.Place == "" {
		return nil, fmt.Errorf("it needs a request, a place, a reason and how often it must be sent: %q", block)
	}
	e.Often = often
	return e, nil
}

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
		for request := range strings.SplitSeq(e.Request, ", ") {
			times += sent[request]
		}
		return e.Seen > 0 || times < e.Often
	})
}

// Has reports whether a signature is in the list.
func (k Known) Has(s Signature) bool { return k.find(s) != nil }
