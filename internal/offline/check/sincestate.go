package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
)

// storeDefinitions serves the old definitions, and finds the kinds whose definition changes.
func (s *since) storeDefinitions(ctx context.Context) error {
	wanted := map[kindName]bool{}
	for _, d := range slices.Concat(s.old.changed, s.now.changed) {
		wanted[d.kind()] = true
	}
	if err := s.addGiven(wanted); err != nil {
		return err
	}
	for _, d := range inFiles(s.old.definitions) {
		now := s.now.definitions[object.Name(d.tree)]
		changed := now == nil || !object.Equal(d.tree, now.tree) || s.newRules(object.Name(d.tree))
		if changed {
			s.affected[d.defines()] = true
		}
		if changed || wanted[d.defines()] {
			if err := s.storeDefinition(ctx, d); err != nil {
				return err
			}
		}
	}
	for name, d := range s.now.definitions {
		if s.old.definitions[name] == nil {
			s.affected[d.defines()] = true
		}
	}
	return nil
}

// newRules reports whether the conversion rules of a definition change.
func (s *since) newRules(definition string) bool {
	old, now := s.old.rules[definition], s.now.rules[definition]
	return now != nil && (old == nil || !object.Equal(old.tree, now.tree))
}

// addGiven adds the definitions of Options.Definitions, and published ones, to both states, where the
// files have none.
func (s *since) addGiven(wanted map[kindName]bool) error {
	given, err := read(s.o.Definitions, nil)
	if err != nil {
		return err
	}
	have := given.documents
	for _, d := range slices.Concat(inFiles(s.old.definitions), inFiles(s.now.definitions)) {
		have = append(have, *d)
	}
	published, err := s.published(wanted, have)
	if err != nil {
		return err
	}
	given.documents = append(given.documents, published...)
	for i := range given.documents {
		d := &given.documents[i]
		name := object.Name(d.tree)
		if !d.isDefinition() || s.now.definitions[name] != nil {
			continue
		}
		s.now.definitions[name] = d
		if s.old.definitions[name] == nil {
			s.old.definitions[name] = d
		}
	}
	return nil
}

// inFiles returns definitions in the order of their files.
func inFiles(definitions map[string]*Document) []*Document {
	var all []*Document
	for _, d := range definitions {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b *Document) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.path, b.path))
	})
	return all
}

// changeDefinitions checks new and changed definitions, serves them, and deletes removed ones.
func (s *since) changeDefinitions(ctx context.Context) error {
	for _, d := range s.now.changed {
		if !d.isDefinition() || d.broken != nil {
			continue
		}
		old := s.old.definitions[object.Name(d.tree)]
		if old != nil && object.Equal(old.tree, d.tree) && len(d.duplicates) == 0 {
			s.unchanged++
			continue
		}
		r, err := s.define(ctx, d)
		if err != nil {
			return err
		}
		s.results = append(s.results, r)
	}
	for _, d := range inFiles(s.now.definitions) { // those of Options.Definitions in place of removed ones, and those with rules
		name := object.Name(d.tree)
		old := s.old.definitions[name]
		if old == nil || s.given[name] != nil || s.rules[name] == nil && (object.Equal(old.tree, d.tree) || slices.Contains(s.now.changed, d)) {
			continue
		}
		if _, err := s.define(ctx, d); err != nil {
			return err
		}
	}
	for _, d := range inFiles(s.old.definitions) {
		if s.now.definitions[object.Name(d.tree)] == nil {
			s.results = append(s.results, s.removeDefinition(d))
		}
	}
	return nil
}

// removeDefinition stops serving a kind. A server deletes its objects, too.
func (s *since) removeDefinition(d *Document) Result {
	r := d.result()
	r.Verdict, r.Delete = Accepted, true
	kind, objects := d.defines(), 0
	for _, other := range slices.Concat(s.same, s.old.changed) {
		if other.broken == nil && other.kind() == kind {
			objects++
		}
	}
	if s.gone == nil {
		s.gone = map[kindName]bool{}
	}
	s.gone[kind] = true
	if objects > 0 {
		r.Warnings = []Problem{{Message: fmt.Sprintf("the definition is deleted: a server deletes the %s of the kind, too", count(objects, "object"))}}
		d.place(&r)
	}
	return r
}

// asStoredOld returns an old object as a server with the old definitions stores it, or nil if they
// do not have its kind.
func (s *since) asStoredOld(ctx context.Context, d *Document, id identity) object.Tree {
	k, err := s.find(d)
	if err != nil || !k.definition.Stored() {
		return nil
	}
	t := completed(k, d.tree)
	asStored(t, k.definition, id.namespace)
	storage := k.definition.StorageVersion()
	if k.version == storage || !s.affected[id.kindName] || !storage.Served {
		return t
	}
	// The new definition may not serve the version of the file.
	unlock := s.lock(id)
	defer unlock()
	key := k.definition.Key(id.namespace, id.name)
	if s.server.Put(ctx, key, object.AppendJSON(nil, t)) != nil {
		return t
	}
	defer func() { _ = s.server.Put(context.WithoutCancel(ctx), key, nil) }()
	a, err := Ask(ctx, s.server, http.MethodGet, path(k.definition, storage.Name, id, nil), "", nil)
	if converted := a.tree(); err == nil && converted != nil {
		asStored(converted, k.definition, id.namespace)
		return converted
	}
	return t
}

// completed returns a copy of an object with defaults and without unknown fields, or an unchanged
// copy if the schema of its version does not fit.
func completed(k kind, t object.Tree) object.Tree {
	for _, v := range k.definition.Versions {
		if k.definition.APIVersion(v.Name) != object.APIVersion(t) {
			continue
		}
		if out, err := asRead(v, t); err == nil {
			return out
		}
	}
	return object.CloneTree(t)
}

// remove checks the deletion of an object. Objects of a kind that is not served are passed over.
func (s *since) remove(ctx context.Context, p *pair) (Result, error) {
	r := p.old.result()
	r.Delete, r.Verdict = true, Passed
	k, err := s.find(p.old)
	if s.gone[p.id.kindName] {
		r.Verdict = Accepted // with its definition
	}
	if err != nil || p.stored == nil {
		return r, nil
	}
	r.Namespace = p.id.namespace
	key := k.definition.Key(p.id.namespace, p.id.name)
	if err := s.server.Put(ctx, key, object.AppendJSON(nil, completed(k, p.stored))); err != nil {
		return r, err
	}
	a, err := Ask(ctx, s.server, http.MethodDelete, path(k.definition, k.version.Name, p.id, url.Values{"dryRun": {metav1.DryRunAll}}), "", nil)
	if dropped := s.server.Put(context.WithoutCancel(ctx), key, nil); err != nil || dropped != nil {
		return r, errors.Join(err, dropped)
	}
	r.note(a)
	r.answer = nil
	if r.Verdict == Accepted && p.id.Group == "" && p.id.Kind == "Namespace" && slices.Contains(builtin.ImmortalNamespaces(), p.id.name) {
		// The admission plugin with this rule needs other namespaces.
		r.Code, r.Reason = http.StatusForbidden, string(metav1.StatusReasonForbidden)
		r.refuse("", fmt.Sprintf("namespaces %q is forbidden: this namespace may not be deleted", p.id.name))
	}
	p.old.place(&r)
	return r, nil
}

// lock serializes checks of objects with the same identity, and returns the function that unlocks.
func (s *since) lock(id identity) (unlock func()) {
	lock, _ := s.turns.LoadOrStore(id, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock
}
