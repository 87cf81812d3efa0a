package rbac

import (
	"errors"
	"testing"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/store/kv"
)

// A State decides by the roles and bindings of its revision.
func TestPast(t *testing.T) {
	w := newWorld(t)
	revision := func() int64 {
		n, err := w.backend.Revision(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := revision()
	w.store(`
kind: Role
metadata: {name: reader, namespace: dev}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
kind: RoleBinding
metadata: {name: ann, namespace: dev}
roleRef: {kind: Role, name: reader}
subjects: [{kind: User, name: ann}]`)
	granted := revision()
	w.remove("RoleBinding", "dev", "ann")
	after := revision()

	past := NewPast(w.backend, w.set)
	read := &authz.Attributes{User: &request.User{Name: "ann"}, Info: request.Info{IsResource: true, Verb: "get", Namespace: "dev", Resource: "secrets", Name: "x"}}
	for range 2 {
		for at, want := range map[int64]authz.Decision{before: authz.NoOpinion, granted: authz.Allow, after: authz.NoOpinion} {
			s, err := past.At(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			if got, reason, err := s.Authorize(t.Context(), read); got != want || err != nil {
				t.Errorf("at %d: %v %q %v", at, got, reason, err)
			}
			if got, _, _ := s.Authorize(t.Context(), &authz.Attributes{Info: read.Info}); got != authz.NoOpinion {
				t.Errorf("without a user: %v", got)
			}
		}
	}
	for at := range after {
		if at > 0 {
			if _, err := past.At(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(past.kept) > keptStates {
		t.Errorf("%d states are kept", len(past.kept))
	}
	var future *kv.FutureError
	if _, err := past.At(t.Context(), after+1); !errors.As(err, &future) {
		t.Errorf("a state of the future: %v", err)
	}
}
