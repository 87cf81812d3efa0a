package check

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/order"
)

// A Verdict is a server's decision on an object.
type Verdict string

// The verdicts.
const (
	Accepted Verdict = "accepted"
	Refused  Verdict = "refused"
	// Lossy marks an accepted object that loses fields in another version.
	Lossy Verdict = "lossy"
	// Unknown marks an unreadable object, or one of a kind without a definition.
	Unknown Verdict = "unknown"
	// Passed marks a skipped object.
	Passed Verdict = "passed over"
)

// A Result is the result of one object.
type Result struct {
	File string `json:"file"`
	// Line is the first line of the document in the file. It is 0 if the object was generated from the
	// file, as by Helm or kustomize.
	Line       int     `json:"line"`
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Namespace  string  `json:"namespace,omitempty"`
	Name       string  `json:"name,omitempty"`
	Verdict    Verdict `json:"verdict"`
	// Update reports that the object was checked as an update.
	Update bool `json:"update,omitempty"`
	// Delete reports that the deletion of the object was checked.
	Delete bool `json:"delete,omitempty"`
	// Code, Reason and Message are from the Status of a rejection.
	Code    int    `json:"code,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Problems are the causes of a rejection.
	Problems []Problem `json:"problems,omitempty"`
	Warnings []Problem `json:"warnings,omitempty"`
	// Schemas of a definition, with Options.OnlyDefinitions.
	Schemas []Schema `json:"schemas,omitempty"`

	document *Document
	answer   []byte      // the object as it would be stored, JSON
	shown    object.Tree // the object in another version, with Conversions.To
	old      object.Tree // the stored object
}

// stored returns the object as it would be stored, or nil.
func (r *Result) stored() object.Tree {
	if r.answer == nil {
		return nil
	}
	t, _, _ := codec.Decode(codec.JSON, r.answer)
	return t
}

// A Problem is an error or a warning about an object.
type Problem struct {
	// Line and Column of the file; 0 if unknown.
	Line   int `json:"line"`
	Column int `json:"column"`
	// RenderedLine is the line in the output of Helm; 0 for other input.
	RenderedLine int `json:"renderedLine,omitempty"`
	// Field and Type are from a cause of the Status; empty for the whole object.
	Field   string `json:"field,omitempty"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
}

// refuse rejects the object for a reason that is not from the server.
func (r *Result) refuse(field, message string) {
	r.Verdict, r.Message = Refused, message
	r.Problems = append(r.Problems, Problem{Field: field, Message: message})
}

// A Summary has counts.
type Summary struct {
	Files    int `json:"files"`
	Objects  int `json:"objects"`
	Accepted int `json:"accepted"`
	Refused  int `json:"refused"`
	Lossy    int `json:"lossy"`
	Unknown  int `json:"unknown"`
	Problems int `json:"problems"`
	Warnings int `json:"warnings"`
	// PassedOver counts documents in folders that are not objects, and skipped objects of kinds
	// without a definition.
	PassedOver int `json:"passedOver"`
	// Unchanged counts objects that Since did not check.
	Unchanged int `json:"unchanged,omitempty"`
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

// Expressions for the places in messages.
var (
	quoted    = regexp.MustCompile(`^(?:unknown|duplicate) field "(.*)"$`)
	atLine    = regexp.MustCompile(`\bline (\d+)\b`)
	ofGoField = regexp.MustCompile(`Go struct field [^.\s]+\.(\S+) of type`)
)

// strictPrefix precedes the errors of strict field validation.
const strictPrefix = "strict decoding error: "

// isStrict reports whether an object is rejected because of unknown or duplicate fields.
func (r *Result) isStrict() bool {
	return r.Verdict == Refused && strings.Contains(r.Message, strictPrefix)
}

// quotedField returns the field in one of these errors.
func quotedField(message string) string {
	m := quoted.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return m[1]
}

// lineOf returns the line in an error of the YAML library, or 0.
func lineOf(message string) int {
	m := atLine.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// goField returns the field in an error of a Go decoder, or "".
func goField(message string) string {
	m := ofGoField.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	return m[1]
}

// strictProblems splits the error for unknown and duplicate fields into problems.
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

// inOrder sorts problems by position.
func inOrder(problems []Problem) {
	order.Stable(problems, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
}
