package check

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object"
)

// A Verdict is what a server would do with an object.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"
	Refused  Verdict = "refused"
	// Lossy is that of an object that is accepted, but loses fields in another version.
	Lossy Verdict = "lossy"
	// Unknown is that of an object that cannot be read, or is of a kind without definition.
	Unknown Verdict = "unknown"
	// Passed is that of an object that was passed over.
	Passed Verdict = "passed over"
)

// A Result is what was found in one object.
type Result struct {
	File string `json:"file"`
	// Line of the file on which its document begins.
	Line       int     `json:"line"`
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Namespace  string  `json:"namespace,omitempty"`
	Name       string  `json:"name,omitempty"`
	Verdict    Verdict `json:"verdict"`
	// Update says that it was checked as an update.
	Update bool `json:"update,omitempty"`
	// Code, Reason and Message are those of the answer, if that is a refusal.
	Code    int    `json:"code,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Problems for which it is refused, and Warnings.
	Problems []Problem `json:"problems,omitempty"`
	Warnings []Problem `json:"warnings,omitempty"`
	// Schemas with rules of a definition, if Options.OnlyDefinitions asks for them.
	Schemas []Schema `json:"schemas,omitempty"`

	document *Document
	stored   object.Tree // what would be stored
	shown    object.Tree // the same in another version, if that is asked for
	old      object.Tree // what is stored
}

// A Problem is something that is said of an object.
type Problem struct {
	// Line and Column of the file.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Field and Type as in the causes of a Status. Empty where it is not about a field.
	Field   string `json:"field,omitempty"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
}

// refuse refuses the object for a reason of its own.
func (r *Result) refuse(field, message string) {
	r.Verdict, r.Message = Refused, message
	r.Problems = append(r.Problems, Problem{Field: field, Message: message})
}

// A Summary counts.
type Summary struct {
	Files    int `json:"files"`
	Objects  int `json:"objects"`
	Accepted int `json:"accepted"`
	Refused  int `json:"refused"`
	Lossy    int `json:"lossy"`
	Unknown  int `json:"unknown"`
	Problems int `json:"problems"`
	Warnings int `json:"warnings"`
	// PassedOver are documents of folders that are no objects, and objects of kinds without definition
	// if these are passed over.
	PassedOver int `json:"passedOver"`
}

func summarize(results []Result) Summary {
	var s Summary
	for i := range results {
		s.add(&results[i])
	}
	return s
}

func (s *Summary) add(r *Result) {
	s.Objects++
	s.Problems += len(r.Problems)
	s.Warnings += len(r.Warnings)
	switch r.Verdict {
	case Accepted:
		s.Accepted++
	case Refused:
		s.Refused++
	case Lossy:
		s.Lossy++
	case Unknown:
		s.Unknown++
	case Passed:
		s.PassedOver++
	}
}

// strictPrefix comes before what strict field validation finds.
const strictPrefix = "strict decoding error: "

// isStrict reports whether an object is refused because of fields that are unknown or there twice.
func (r *Result) isStrict() bool {
	return r.Verdict == Refused && strings.Contains(r.Message, strictPrefix)
}

// quotedField finds the field in one of its messages.
func quotedField(message string) string {
	m := regexp.MustCompile(`^(?:unknown|duplicate) field "(.*)"$`).FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return m[1]
}

// lineOf finds the line in a message of the YAML library, or returns 0.
func lineOf(message string) int {
	m := regexp.MustCompile(`\bline (\d+)\b`).FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// goField finds the field in the message of a decoder of Go types, or returns "".
func goField(message string) string {
	m := regexp.MustCompile(`Go struct field [^.\s]+\.(\S+) of type`).FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return m[1]
}

// strictProblems are what a refusal for unknown and duplicate fields says, one by one.
func strictProblems(message string) []Problem {
	_, list, ok := strings.Cut(message, strictPrefix)
	if !ok {
		return nil
	}
	var out []Problem
	rest := list
	for rest != "" {
		var one string
		if rest, ok = strings.CutPrefix(rest, "yaml: unmarshal errors:\n"); ok || strings.HasPrefix(rest, "  line ") {
			one, rest, _ = strings.Cut(rest, "\n")
			one, more, found := strings.Cut(one, `, unknown field "`)
			if found {
				rest = `unknown field "` + more
			}
			out = append(out, Problem{Message: strings.TrimSpace(one)})
			continue
		}
		end := strings.Index(rest, `", `)
		if end < 0 {
			one, rest = rest, ""
		} else {
			one, rest = rest[:end+1], rest[end+3:]
		}
		out = append(out, Problem{Field: quotedField(one), Message: one})
	}
	return out
}

// inOrder puts problems in the order of the file.
func inOrder(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
}
