package judge

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// An Entry is a known difference, or a class of them.
type Entry struct {
	Signature     // request, resource and place may be lists, and texts may be patterns
	Often     int // number of requests after which it should have occurred
	Because   string
	Seen      int

	place, theirs, ours says
}

// parse reads an entry, and returns nil if a block has none.
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
	return e, e.compile()
}

// compile compiles the patterns.
func (e *Entry) compile() (err error) {
	if e.place, err = readSays(e.Place); err != nil {
		return err
	}
	if e.theirs, err = readSays(e.Theirs); err != nil {
		return err
	}
	if e.ours, err = readSays(e.Ours); err != nil {
		return err
	}
	if t, o := e.theirs.groups(), e.ours.groups(); t != o {
		return fmt.Errorf("%s has %d groups, and %s has %d", e.Theirs, t, e.Ours, o)
	}
	if e.Resource == "any" && (e.theirs.unbounded() || e.ours.unbounded()) {
		return fmt.Errorf("%q and %q are for any resource: one of them matches every message", e.Theirs, e.Ours)
	}
	return nil
}

// reasons are prefixes of a verdict, to which any message can be appended.
var reasons = []string{"", "400 BadRequest: ", "401 Unauthorized: ", "403 Forbidden: ", "404 NotFound: ", "405 MethodNotAllowed: ", "406 NotAcceptable: ",
	"409 AlreadyExists: ", "409 Conflict: ", "410 Expired: ", "410 Gone: ", "413 RequestEntityTooLarge: ", "415 UnsupportedMediaType: ", "422 Invalid: ",
	"429 TooManyRequests: ", "500 <nil>: ", "500 InternalError: ", "503 ServiceUnavailable: ", "504 Timeout: "}

// unbounded reports whether a pattern matches every message of a code. A pattern with a group is bound
// to the text of the other side.
func (s says) unbounded() bool {
	return s.pattern != nil && s.groups() == 0 &&
		slices.ContainsFunc(reasons, func(reason string) bool { return s.pattern.MatchString(reason + nothing) })
}

// has reports whether an entry covers a signature.
func (e *Entry) has(s Signature) bool {
	if !e.asks(s.Request) || e.Resource != "any" && !in(e.Resource, s.Resource) {
		return false
	}
	if !in(e.Place, s.Place) && e.place.match(s.Place) == nil {
		return false
	}
	theirs, ours := e.theirs.match(s.Theirs), e.ours.match(s.Ours)
	return theirs != nil && ours != nil && slices.EqualFunc(theirs[1:], ours[1:], same)
}

// groups are names for kinds of requests with the same verb, on an object or on a subresource.
var groups = map[string]*regexp.Regexp{
	"any patch": regexp.MustCompile(`(^| |-)patch$`),
	"any apply": regexp.MustCompile(`(^| )(apply|body patch)$`),
	"any put":   regexp.MustCompile(`(^| )put( |$)`),
	"any post":  regexp.MustCompile(`(^| )post( |$)`),
	"any list":  regexp.MustCompile(`^list( |$)`),
	"any write": regexp.MustCompile(`(^| |-)(patch|apply|put|post)( |$)`),
}

// asks reports whether an entry covers a kind of request.
func (e *Entry) asks(kind string) bool {
	for name := range strings.SplitSeq(e.Request, ", ") {
		if group := groups[name]; name == kind || group != nil && group.MatchString(kind) {
			return true
		}
	}
	return false
}

func in(list, name string) bool {
	return slices.Contains(strings.Split(list, ", "), name)
}

// same reports whether two texts are equal. A text that Shape truncated equals any text with that
// prefix.
func same(a, b string) bool {
	startA, cutA := strings.CutSuffix(a, "…")
	startB, cutB := strings.CutSuffix(b, "…")
	switch {
	case cutA && cutB:
		return strings.HasPrefix(startA, startB) || strings.HasPrefix(startB, startA)
	case cutA:
		return strings.HasPrefix(b, startA)
	case cutB:
		return strings.HasPrefix(a, startB)
	}
	return a == b
}

// says is an entry's text for one side or for a place, or its pattern.
type says struct {
	text    string
	pattern *regexp.Regexp
}

// nothing is a text that no server sends. A pattern that matches it would match anything.
const nothing = "\x00"

func readSays(in string) (says, error) {
	if len(in) < 2 || in[0] != '/' || in[len(in)-1] != '/' {
		return says{text: in}, nil
	}
	inside := in[1 : len(in)-1]
	pattern, err := regexp.Compile(`^(?:` + inside + `)$`)
	if err != nil {
		return says{}, err
	}
	if pattern.MatchString(nothing) && pattern.NumSubexp() == 0 {
		return says{}, fmt.Errorf("%s matches anything", in)
	}
	return says{pattern: pattern}, nil
}

// groups returns the number of groups in the pattern.
func (s says) groups() int {
	if s.pattern == nil {
		return 0
	}
	return s.pattern.NumSubexp()
}

// match returns a matching text and its groups, nil for another text.
func (s says) match(text string) []string {
	if s.pattern != nil {
		return s.pattern.FindStringSubmatch(text)
	}
	if s.text != text {
		return nil
	}
	return []string{text}
}
