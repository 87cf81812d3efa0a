package match

import (
	"context"
	"maps"
	"sync/atomic"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// An Index finds entries whose Criteria match a write. It evaluates the rules at the first
// question, and caches the answers with the version of the resource until Replace. The zero value
// is empty.
type Index[T any] struct {
	now atomic.Pointer[generation[T]]
}

// A generation is the content of an Index between two calls of Replace. Cached answers have its
// number and not its address, so they do not keep it in memory.
type generation[T any] struct {
	number  int64
	entries []Entry[T]
}

// An Entry is a value with its Criteria.
type Entry[T any] struct {
	*Criteria
	Of T
}

// A question is the input of rules besides the version of the resource. The version caches the
// answers.
type question struct {
	operation   registry.Operation
	subresource string
}

// answers are the cached answers for one version.
type answers[T any] struct {
	generation int64
	to         map[question][]Candidate[T]
}

type place[T any] struct{ answers atomic.Pointer[answers[T]] }

// A Candidate is an entry whose rules match a question. Names and selectors are still to be
// checked.
type Candidate[T any] struct {
	Entry[T]
	forms, excluded []named
}

// Replace replaces all entries. Find returns them in this order. Calls must not overlap.
func (x *Index[T]) Replace(entries []Entry[T]) {
	next := &generation[T]{number: 1, entries: entries}
	if old := x.now.Load(); old != nil {
		next.number = old.number + 1
	}
	x.now.Store(next)
}

// Empty reports whether the index has no entries.
func (x *Index[T]) Empty() bool {
	now := x.now.Load()
	return now == nil || len(now.entries) == 0
}

// Find returns the entries whose rules match a write, in the order of the entries. The catalog has
// the equivalent resources.
func (x *Index[T]) Find(catalog *resource.Catalog, a *registry.Admission) []Candidate[T] {
	now := x.now.Load()
	if now == nil || len(now.entries) == 0 {
		return nil
	}
	q := question{a.Operation, a.Target.Subresource}
	p := a.Target.Version.Derived(x, func() any { return &place[T]{} }).(*place[T])
	known := p.answers.Load()
	if known != nil && known.generation == now.number {
		if found, ok := known.to[q]; ok {
			return found
		}
	}
	found := now.answer(&q, forms(catalog.Set(), a.Target.Definition, a.Target.Version, q.subresource))
	next := &answers[T]{generation: now.number, to: map[question][]Candidate[T]{q: found}}
	if known != nil && known.generation == now.number {
		maps.Copy(next.to, known.to)
	}
	p.answers.Store(next)
	return found
}

func (g *generation[T]) answer(q *question, forms []*Form) (all []Candidate[T]) {
	for _, e := range g.entries {
		c := Candidate[T]{Entry: e, excluded: e.matching(e.excluded, q, forms), forms: e.matching(e.rules, q, forms)}
		if e.every {
			c.forms = []named{{form: forms[0]}}
		}
		if len(c.forms) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// Match returns the form in which a write is presented, or nil if it does not match. An error of a
// selector counts only if everything else matches.
func (c *Candidate[T]) Match(ctx context.Context, w *Write) (*Form, error) {
	inNamespace, namespaceErr := w.inNamespace(ctx, c.namespaces)
	if namespaceErr == nil && !inNamespace {
		return nil, nil
	}
	selected, objectErr := w.selected(ctx, c.objects)
	if objectErr == nil && !selected {
		return nil, nil
	}
	name := w.Target.Name
	for i := range c.excluded {
		if c.excluded[i].is(name) {
			return nil, nil
		}
	}
	for i := range c.forms {
		switch {
		case !c.forms[i].is(name):
		case namespaceErr != nil:
			return nil, namespaceErr
		case objectErr != nil:
			return nil, objectErr
		default:
			return c.forms[i].form, nil
		}
	}
	return nil, nil
}

func (s selector) broken() error {
	if s.err != nil {
		return status.Internal(s.err)
	}
	return nil
}
