package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/merge"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

// Manager is the field manager of an undo.
const Manager = "anykind-undo"

// A Step is the undo of changes of one object, or the change of one that was made in a copy of the server.
type Step struct {
	Object
	Changes   []Change // the newest first
	Conflicts []merge.Conflict
	// LeftOut are the owner references that a new object does not get, because their owner is gone.
	LeftOut []string
	// Differences are those that the undo makes, by the dry run of the server.
	Differences []merge.Difference

	now, result object.Tree // nil if the object does not exist
	status      bool        // the undo writes the subresource status
	copied      bool        // the change was made in a copy of the server
	uids        Uids        // of such a change
	uid         string      // that the object has in the copy
}

// Undoes plans the undo of one change of an object: that of a revision, or the newest one for "".
func (c Client) Undoes(ctx context.Context, o Object, revision string, force bool) (*Step, error) {
	list, err := c.Changes(ctx, o, 0, "")
	if err != nil {
		return nil, err
	}
	for _, change := range slices.Backward(list.Items) {
		status := o.HasStatus && change.Subresource == "status"
		if change.Revision == revision || revision == "" && !status {
			s := &Step{Object: o, Changes: []Change{change}}
			return s, c.plan(ctx, s, s.Changes, force)
		}
	}
	if revision == "" {
		return nil, fmt.Errorf("%s: the history has no change to undo", o.Title())
	}
	return nil, fmt.Errorf("%s: the history has no change with revision %s; anykind history lists them", o.Title(), revision)
}

// Returns plans the return of an object to a revision. It has no conflicts.
func (c Client) Returns(ctx context.Context, o Object, revision string) (*Step, error) {
	if err := c.Kept(ctx, o); err != nil {
		return nil, err
	}
	then, err := c.At(ctx, o, Moment{Revision: revision})
	if err != nil {
		return nil, err
	}
	if len(then) == 0 {
		return nil, fmt.Errorf("%s did not exist at revision %s", o.Title(), revision)
	}
	now, err := c.At(ctx, o, Moment{})
	if err != nil {
		return nil, err
	}
	s := &Step{Object: o}
	if len(now) > 0 {
		s.now = now[0]
	}
	return s, c.complete(ctx, s, []Change{{Before: then[0], Object: s.now}}, false)
}

// UndoesBy plans the undo of the changes of a user since a time, in objects of kinds. Changes of the
// subresource status are left out: controllers write it. If all is set, kinds without a history are left
// out, as long as one kind has a history.
func (c Client) UndoesBy(ctx context.Context, user string, since time.Time, kinds []Object, all, force bool) ([]*Step, error) {
	found := map[string]*Step{}
	kept := false
	for _, kind := range kinds {
		list, err := c.After(ctx, kind, since)
		if all && errors.Is(err, ErrNone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Title(), err)
		}
		kept = true
		for _, change := range list.Items {
			if change.User != user || kind.HasStatus && change.Subresource == "status" {
				continue
			}
			o := Object{kind.Kind, object.Namespace(change.State()), object.Name(change.State())}
			s := found[o.path()]
			if s == nil {
				s = &Step{Object: o}
				found[o.path()] = s
			}
			s.Changes = append([]Change{change}, s.Changes...)
		}
	}
	if !kept {
		return nil, ErrNone
	}
	var steps []*Step
	for _, s := range found {
		if err := c.plan(ctx, s, s.Changes, force); err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	slices.SortFunc(steps, func(a, b *Step) int { // so a namespace is created before its objects
		return cmp.Or(-cmp.Compare(a.revision(), b.revision()), cmp.Compare(a.path(), b.path()))
	})
	return steps, nil
}

func (s *Step) revision() int64 {
	n, _ := strconv.ParseInt(s.Changes[0].Revision, 10, 64)
	return n
}

// plan computes a step by changes of its object, the newest first.
func (c Client) plan(ctx context.Context, s *Step, changes []Change, force bool) error {
	o := s.Object
	s.status = o.HasStatus && changes[0].Subresource == "status"
	for i := range changes {
		change := &changes[i]
		if change.Type != Added && change.Before == nil || change.Type != Deleted && change.Object == nil {
			return fmt.Errorf("%s: the history does not show both states of revision %s: %s", o.Title(), change.Revision, cmp.Or(change.Error, "they are not kept"))
		}
	}
	now, err := c.At(ctx, o, Moment{})
	if err != nil {
		return err
	}
	if len(now) > 0 {
		s.now = now[0]
	}
	return c.complete(ctx, s, changes, force)
}

// complete computes the result of a step.
func (c Client) complete(ctx context.Context, s *Step, changes []Change, force bool) error {
	value := s.part(s.now)
	for i := range changes {
		before, after := changes[i].Before, changes[i].Object
		switch changes[i].Type {
		case Added:
			before = nil
		case Deleted:
			after = nil
		}
		var conflicts []merge.Conflict
		value, conflicts = merge.Undo(s.part(before), s.part(after), value, force)
		for _, conflict := range conflicts {
			// Without force the field keeps its value, so each older change of it is in the same conflict.
			if !slices.ContainsFunc(s.Conflicts, func(c merge.Conflict) bool { return c.Path == conflict.Path }) {
				s.Conflicts = append(s.Conflicts, conflict)
			}
		}
	}
	switch {
	case value == nil, s.now == nil && s.status: // a missing object has no status
		return nil
	case s.now == nil:
		s.result = object.CloneTree(merge.Without(value, merge.ServerFields()...))
		return c.leaveOut(ctx, s)
	}
	// The request writes either the status or the rest. The other part stays as it is.
	whole, status := value, s.now
	if s.status {
		whole, status = s.now, value
	}
	s.result = object.CloneTree(whole)
	if s.HasStatus {
		delete(s.result, "status")
		if v, ok := status["status"]; ok {
			s.result["status"] = object.Clone(v)
		}
	}
	return c.leaveOut(ctx, s)
}

// part returns the part of an object that the request of the step writes.
func (s *Step) part(o object.Tree) object.Tree {
	switch {
	case o == nil || !s.HasStatus:
		return o
	case s.status:
		out := object.Tree{}
		if status, ok := o["status"]; ok {
			out["status"] = status
		}
		return out
	}
	out := merge.Without(o)
	delete(out, "status")
	return out
}

// leaveOut drops the owner references that the step adds and whose owner is gone: the garbage collector
// would delete the object.
func (c Client) leaveOut(ctx context.Context, s *Step) error {
	references := owners(s.result)
	if len(references) == 0 || object.Equal(references, owners(s.now)) {
		return nil
	}
	kinds, err := c.Kinds(ctx)
	if err != nil {
		return err
	}
	var kept []any
	for _, r := range references {
		reference, _ := r.(object.Tree)
		exists := s.uids.creates(reference)
		if !exists {
			if exists, err = c.owns(ctx, kinds, reference, s.Namespace); err != nil {
				return err
			}
		}
		if exists {
			kept = append(kept, r)
			continue
		}
		s.LeftOut = append(s.LeftOut, fmt.Sprintf("%v %v with uid %v", reference["kind"], reference["name"], reference["uid"]))
	}
	metadata := object.Metadata(s.result)
	if metadata["ownerReferences"] = kept; len(kept) == 0 {
		delete(metadata, "ownerReferences")
	}
	return nil
}

// owns reports whether the object of an owner reference exists.
func (c Client) owns(ctx context.Context, kinds []apiclient.Kind, reference object.Tree, namespace string) (bool, error) {
	k := apiclient.Of(kinds, reference)
	if k == nil {
		return false, nil
	}
	name, _ := reference["name"].(string)
	var owner object.Tree
	err := c.Get(ctx, k.Path(namespace, name), &owner)
	if apiclient.Missing(err) {
		return false, nil
	}
	return err == nil && object.UID(owner) == reference["uid"], err
}

// ErrConflicts reports that the steps would overwrite other changes.
var ErrConflicts = errors.New("other changes are in conflict: nothing is written; --force overwrites them")

// Prepare sends each step as a dry run, and sets its Differences, unless a step has conflicts. todo
// reports that a step writes.
func (c Client) Prepare(ctx context.Context, steps []*Step, force bool) (todo bool, err error) {
	for _, s := range steps {
		if len(s.Conflicts) > 0 && !force {
			return false, ErrConflicts
		}
		todo = todo || s.Action() != none
	}
	return todo, c.dryRun(ctx, steps)
}

// Definitions is the resource of CustomResourceDefinitions.
const Definitions = "customresourcedefinitions.apiextensions.k8s.io"

// dryRun sends dry runs. An object is not sent if an earlier step creates its namespace, or writes the
// definition of its kind.
func (c Client) dryRun(ctx context.Context, steps []*Step) error {
	var errs []error
	created, defined := map[string]bool{}, map[string]bool{} // namespaces; the plural and group of kinds
	for _, s := range steps {
		answer := s.result
		var err error
		if !defined[s.GroupResource().String()] && (!created[s.Namespace] || s.now != nil) {
			answer, err = c.write(ctx, s, true)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Title(), err))
		}
		switch action := s.Action(); s.GroupResource().String() {
		case "namespaces":
			created[s.Name] = action == create
		case Definitions:
			defined[s.Name] = action == create || action == update
		}
		if s.now != nil && answer != nil {
			s.Differences = merge.Compare(s.now, answer)
		}
	}
	return errors.Join(errs...)
}

// Write writes each step and calls report for each written object, with "created", "updated" or
// "deleted". After an error it continues with the next step.
func (c Client) Write(ctx context.Context, steps []*Step, report func(s *Step, result string)) error {
	var errs []error
	for _, s := range steps {
		if s.Action() == none {
			continue
		}
		if err := c.writeOwned(ctx, s); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Title(), err))
			continue
		}
		report(s, map[string]string{create: "created", update: "updated", remove: "deleted"}[s.Action()])
	}
	return errors.Join(errs...)
}

// The actions of a step.
const (
	none   = ""
	create = "create"
	update = "update"
	remove = "delete"
)

// Action returns the action of a step, or "" if the object has the earlier state already.
func (s *Step) Action() string {
	switch {
	case s.now == nil && s.result == nil, s.now != nil && s.result != nil && object.Equal(s.now, s.result):
		return none
	case s.now == nil:
		return create
	case s.result == nil:
		return remove
	}
	return update
}

// write sends the request of a step, with the revision of the object: a later change fails it.
func (c Client) write(ctx context.Context, s *Step, dryRun bool) (answer object.Tree, err error) {
	query := "?fieldManager=" + cmp.Or(c.Manager, Manager)
	if dryRun {
		query += "&dryRun=All"
	}
	r := apiclient.Request{Method: http.MethodPut, Path: s.path() + query}
	switch s.Action() {
	case none:
		return s.now, nil
	case create:
		r.Method, r.Path = http.MethodPost, s.Kind.Path(s.Namespace, "")+query
		body := merge.Without(s.result)
		if s.HasStatus {
			delete(body, "status")
		}
		r.Body = object.AppendJSON(nil, body)
	case remove:
		options := object.Tree{"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": object.Tree{
			"uid": object.UID(s.now), "resourceVersion": object.ResourceVersion(s.now),
		}}
		if dryRun {
			options["dryRun"] = []any{"All"}
		}
		r.Method, r.Path, r.Body = http.MethodDelete, s.path(), object.AppendJSON(nil, options)
		_, err = c.Do(ctx, r, nil)
		return nil, err
	default:
		if s.status {
			r.Path = s.path() + "/status" + query
		}
		r.Body = object.AppendJSON(nil, s.result)
	}
	_, err = c.Do(ctx, r, &answer)
	return answer, err
}
