// Package lint checks CustomResourceDefinitions as a server does, without a server.
//
// It reads files, has internal/crd validate them, and reports the result for people or for
// programs: what is wrong, and what each rule may cost against its limit, with the bounds
// that would make it cheaper. It does not know commands and flags, or the rules of
// validation.
package lint

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/anykind/anykind/internal/celrule"
	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/crd"
	"github.com/anykind/anykind/internal/object"
)

// A Result is what was found in one CustomResourceDefinition.
type Result struct {
	// File that it is in, and its Name.
	File string `json:"file"`
	Name string `json:"name"`
	// Problems for which a server would refuse it.
	Problems []Problem `json:"problems,omitempty"`
	// Schemas with rules, one for all versions that have the same.
	Schemas []Schema `json:"schemas,omitempty"`
}

// A Problem is something that is wrong.
type Problem struct {
	// Field and Type as in the causes of a Status. Empty where it is not about a
	// field.
	Field   string `json:"field,omitempty"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message"`
}

// A Schema is what the rules of one schema may cost at worst.
type Schema struct {
	Rules []Rule `json:"rules"`
	Cost  uint64 `json:"cost"`
	Limit uint64 `json:"limit"`
}

// A Rule is an expression and what it may cost.
type Rule struct {
	Path       string `json:"path"`
	Expression string `json:"expression"`
	// Cost for one object: CostEach times Times.
	Cost     uint64 `json:"cost"`
	CostEach uint64 `json:"costEach"`
	Times    uint64 `json:"times"`
	Limit    uint64 `json:"limit"`
	// TooExpensive says that it, or all of them together, may cost too much.
	TooExpensive bool `json:"tooExpensive,omitempty"`
	// Bounds that are missing and that, all of them, would be enough.
	Bounds []Bound `json:"bounds,omitempty"`
}

// A Bound is a keyword to add to a schema.
type Bound struct {
	Path    string `json:"path"`
	Keyword string `json:"keyword"`
	Value   int64  `json:"value"`
}

// errNotCRD is of documents that are something else.
var errNotCRD = errors.New("not a CustomResourceDefinition")

// Read returns the results for all CustomResourceDefinitions in a stream of YAML
// or JSON documents, or in lists in it. Other documents are passed over.
func Read(ctx context.Context, file string, in io.Reader) ([]Result, error) {
	var out []Result
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	for n := 1; ; n++ {
		data, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil && len(bytes.TrimSpace(data)) > 0 {
			var found []Result
			found, err = document(ctx, file, data)
			out = append(out, found...)
		}
		if err != nil {
			return out, fmt.Errorf("%s: document %d: %w", file, n, err)
		}
	}
}

func document(ctx context.Context, file string, data []byte) ([]Result, error) {
	tree, duplicates, err := codec.Decode(codec.YAML, data)
	if err != nil {
		return nil, err
	}
	items := []any{tree}
	if list, ok := tree["items"].([]any); ok {
		items = list
	}
	var out []Result
	for _, item := range items {
		obj, _ := item.(object.Tree)
		r, err := check(ctx, file, obj)
		switch {
		case errors.Is(err, errNotCRD):
			continue
		case err != nil:
			return out, err
		}
		for _, message := range codec.Warnings(duplicates) {
			r.Problems = append(r.Problems, Problem{Message: message})
		}
		out = append(out, r)
	}
	return out, nil
}

func check(ctx context.Context, file string, obj object.Tree) (Result, error) {
	r := Result{File: file, Name: object.Name(obj)}
	if object.Kind(obj) != crd.Kind {
		return r, errNotCRD
	}
	if v := object.APIVersion(obj); v != crd.Group+"/v1" {
		return r, fmt.Errorf("%s is of apiVersion %q, which is not served: it has to be %s/v1", r.Name, v, crd.Group)
	}
	v, err := crd.Check(ctx, obj)
	if err != nil {
		r.Problems = append(r.Problems, Problem{Message: err.Error()})
		return r, nil
	}
	for _, field := range v.Unknown {
		r.Problems = append(r.Problems, Problem{Field: field, Message: fmt.Sprintf("unknown field %q", field)})
	}
	for _, err := range v.Errors {
		r.Problems = append(r.Problems, Problem{Field: err.Field, Type: string(err.Type), Message: err.Error()})
	}
	for _, report := range v.Costs {
		r.Schemas = append(r.Schemas, costs(report))
	}
	return r, nil
}

func costs(report *celrule.Report) Schema {
	s := Schema{Cost: report.Total, Limit: celrule.SchemaCostLimit}
	bounds := map[string][]Bound{}
	tooExpensive := map[string]bool{}
	for _, e := range report.TooExpensive() {
		path := e.Path.String()
		tooExpensive[path] = true
		for _, b := range e.Bounds(e.Limit) {
			bounds[path] = append(bounds[path], Bound{b.Path.String(), b.Keyword, b.Value})
		}
	}
	for _, e := range report.Estimates {
		path := e.Path.String()
		s.Rules = append(s.Rules, Rule{
			Path: path, Expression: e.Expression,
			Cost: e.Cost, CostEach: e.Each, Times: e.Times, Limit: e.Limit,
			TooExpensive: tooExpensive[path], Bounds: bounds[path],
		})
	}
	return s
}
