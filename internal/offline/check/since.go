package check

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/order"
	"github.com/anykind/anykind/internal/offline/revision"
)

// Since checks the difference between two states of a repository: new objects as creates, changed
// ones as updates, and removed ones as deletes. Unchanged objects are checked only if their
// definition has changed: as updates without a change.
func Since(ctx context.Context, paths []string, between revision.Range, o Options) (*Report, error) {
	s := &since{
		old: newState(), now: newState(),
		affected: map[kindName]bool{},
	}
	before, after, err := s.files(ctx, paths, between)
	if err != nil {
		return nil, err
	}
	if err := s.read(ctx, before, after); err != nil {
		return nil, err
	}
	if s.checker, err = newChecker(ctx, o); err != nil {
		return nil, err
	}
	defer func() { _ = s.server.Stop(context.WithoutCancel(ctx)) }()
	s.rules = s.now.rules
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	s.sortResults()
	report := &Report{Results: s.results, Summary: summarize(s.results)}
	files := map[string]bool{}
	for i := range s.results {
		files[s.results[i].File] = true
	}
	report.Summary.Files, report.Summary.Unchanged = len(files), s.unchanged
	return report, nil
}

// sortResults sorts the results by place.
func (s *since) sortResults() {
	order.Stable(s.results, func(a, b Result) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) })
}

// A state is the documents of one state of the files.
type state struct {
	// changed are the documents of files that differ from the other state.
	changed []*Document
	// definitions has the definitions of all files, by name, and rules their conversion rules.
	definitions, rules map[string]*Document
	// builds are the outputs of kustomize, by the kustomization.
	builds map[string]*kustomizeOutput
}

func newState() *state {
	return &state{definitions: map[string]*Document{}, rules: map[string]*Document{}, builds: map[string]*kustomizeOutput{}}
}

// A pair is an object in both states. Now is nil for a removed object, and old for a new one.
type pair struct {
	id       identity
	old, now *Document
	// stored is the old object as the server has stored it.
	stored object.Tree
}

// since checks the difference between two states.
type since struct {
	*checker
	old, now *state
	// same are the documents of files that are equal in both states.
	same []*Document
	// affected are the kinds with a new, changed or deleted definition.
	affected  map[kindName]bool
	turns     sync.Map // locks by identity
	results   []Result
	unchanged int
}

// read parses the files concurrently. Equal files are parsed once.
func (s *since) read(ctx context.Context, before, after []revision.File) error {
	known, equal := map[string][]byte{}, map[string]bool{}
	for _, f := range before {
		known[f.Name] = f.Data
	}
	type parsed struct {
		file      revision.File
		documents []*Document
		to        *[]*Document
		states    []*state
	}
	var files []parsed
	for _, f := range after {
		if was, ok := known[f.Name]; ok && bytes.Equal(was, f.Data) {
			equal[f.Name] = true
			files = append(files, parsed{file: f, to: &s.same, states: []*state{s.old, s.now}})
		} else {
			files = append(files, parsed{file: f, to: &s.now.changed, states: []*state{s.now}})
		}
	}
	for _, f := range before {
		if !equal[f.Name] {
			files = append(files, parsed{file: f, to: &s.old.changed, states: []*state{s.old}})
		}
	}
	err := each(ctx, len(files), func(i int) (err error) {
		files[i].documents, err = files[i].states[len(files[i].states)-1].parse(files[i].file)
		return err
	})
	for _, f := range files {
		*f.to = append(*f.to, f.documents...)
		for _, d := range f.documents {
			for _, state := range f.states {
				switch {
				case d.broken == nil && d.isDefinition():
					state.definitions[object.Name(d.tree)] = d
				case d.isRules():
					state.rules[d.target()] = d
				}
			}
		}
	}
	return err
}

// parse parses a file of a state.
func (s *state) parse(f revision.File) (all []*Document, err error) {
	r := &reader{visit: func(d *Document) error {
		one := *d
		all = append(all, &one)
		return nil
	}}
	if k := s.builds[f.Name]; k != nil {
		err = r.splitOutput(k)
	} else {
		err = r.split(f.Name, f.Data, !f.Given)
	}
	return all, err
}

// run stores the old definitions, decides the old objects as stored, changes the definitions, and
// checks the objects: the order of a server.
func (s *since) run(ctx context.Context) error {
	if err := s.storeDefinitions(ctx); err != nil {
		return err
	}
	s.learn()
	pairs := s.pairs()
	for i := range pairs {
		if p := &pairs[i]; p.old != nil && p.id.name != "" {
			p.stored = s.asStoredOld(ctx, p.old, p.id)
		}
	}
	if err := s.changeDefinitions(ctx); err != nil {
		return err
	}
	s.learn()
	s.all = len(pairs) + len(s.results)
	first := len(s.results)
	s.results = append(s.results, make([]Result, len(pairs))...)
	return each(ctx, len(pairs), func(i int) error {
		r, err := s.checkPair(ctx, &pairs[i])
		s.results[first+i] = r
		s.progress()
		return err
	})
}

// pairs matches the objects of both states. It counts unchanged objects, and leaves out those that
// need no check.
func (s *since) pairs() []pair {
	var all []pair
	for _, d := range s.same {
		switch {
		case d.isDefinition() && d.broken == nil:
			s.unchanged++
		case s.affected[d.kind()]:
			all = append(all, pair{id: s.idOf(d), old: d, now: d})
		default:
			s.unchanged++
		}
	}
	found := map[*Document]*Document{} // the old object by the new one
	old := map[identity][]*Document{}
	for _, d := range s.old.changed {
		if d.broken == nil && !d.isDefinition() {
			old[s.idOf(d)] = append(old[s.idOf(d)], d)
		}
	}
	// Several objects with the same name, as in overlays, are matched by content and file first.
	for _, likely := range []func(a, b *Document) bool{
		func(a, b *Document) bool { return a.file == b.file && object.Equal(a.tree, b.tree) },
		func(a, b *Document) bool { return object.Equal(a.tree, b.tree) },
		func(a, b *Document) bool { return a.file == b.file && object.Name(b.tree) != "" },
		func(_, b *Document) bool { return object.Name(b.tree) != "" },
	} {
		for _, d := range s.now.changed {
			if d.broken != nil || d.isDefinition() || found[d] != nil {
				continue
			}
			id := s.idOf(d)
			if at := slices.IndexFunc(old[id], func(a *Document) bool { return likely(a, d) }); at >= 0 {
				found[d] = old[id][at]
				old[id] = slices.Delete(old[id], at, at+1)
			}
		}
	}
	for _, d := range s.now.changed {
		was := found[d]
		switch {
		case d.isDefinition() && d.broken == nil: // checked apart
		case was != nil && object.Equal(was.tree, d.tree) && len(d.duplicates) == 0 && !s.affected[d.kind()]:
			s.unchanged++
		default:
			all = append(all, pair{id: s.idOf(d), old: was, now: d})
		}
	}
	for _, d := range s.old.changed {
		if id := s.idOf(d); id.name != "" && slices.Contains(old[id], d) {
			all = append(all, pair{id: id, old: d})
		}
	}
	return all
}

// idOf returns the identity of an object of any of the states.
func (s *since) idOf(d *Document) identity {
	if k, err := s.find(d); err == nil {
		return s.identify(k, d)
	}
	for _, definition := range s.now.definitions {
		spec, _ := definition.tree["spec"].(object.Tree)
		if definition.defines() == d.kind() && spec["scope"] == "Namespaced" {
			return d.identity(s.namespaceOf(d))
		}
	}
	return d.identity(object.Namespace(d.tree))
}

// checkPair checks a new, changed or removed object. The server has the old object meanwhile.
func (s *since) checkPair(ctx context.Context, p *pair) (Result, error) {
	unlock := s.lock(p.id)
	defer unlock()
	if p.now == nil {
		return s.remove(ctx, p)
	}
	k, err := s.find(p.now)
	if err != nil || p.stored == nil {
		r, err := s.check(ctx, p.now)
		if r.Verdict == Unknown && s.gone[p.id.kindName] && len(r.Problems) > 0 {
			r.Problems[0].Message += ": its CustomResourceDefinition is deleted"
		}
		return r, err
	}
	key, stored := k.definition.Key(p.id.namespace, p.id.name), completed(k, p.stored)
	if err := s.server.Put(ctx, key, object.AppendJSON(nil, stored)); err != nil {
		return Result{}, err
	}
	drop := func() error { return s.server.Put(context.WithoutCancel(ctx), key, nil) }
	d := *p.now
	d.before = stored
	r, err := s.check(ctx, &d)
	if dropped := drop(); err != nil || dropped != nil {
		return r, errors.Join(err, dropped)
	}
	if r.Verdict == Accepted && s.affected[p.id.kindName] && object.Equal(p.old.tree, p.now.tree) {
		err = s.warnOfCreate(ctx, p.now, &r)
	}
	return r, err
}

// warnOfCreate warns of errors in an unchanged object that a server accepts in updates only.
func (s *since) warnOfCreate(ctx context.Context, d *Document, r *Result) error {
	again := d.result()
	err := s.ask(ctx, d, &again, true)
	if again.Verdict != Refused {
		return err
	}
	for _, p := range again.Problems {
		p.Message, p.Type = RefusedChange+": "+p.line(), ""
		r.Warnings = append(r.Warnings, p)
	}
	return err
}
