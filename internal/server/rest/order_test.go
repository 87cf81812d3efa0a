package rest_test

import (
	"strconv"
	"testing"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
)

// Accept is checked before all other parts of a request, and the syntax of selectors before
// conflicting options.
func TestOrderOfRefusals(t *testing.T) {
	s := newServer(t)
	s.make("a")
	const mergePatch, bad, none = "application/merge-patch+json", "?dryRun=x", "text/html"
	for _, tt := range []struct {
		accept, method, path, contentType string
		code                              int
	}{
		{none, "GET", leads + "/a?resourceVersion=x", "", 406},
		{none, "GET", leads + "?labelSelector=%3D%3D", "", 406},
		{none, "GET", leads + "?limit=-1", "", 406},
		{none, "GET", leads + "?watch=1&fieldSelector=x", "", 406},
		{none, "DELETE", leads + "?fieldSelector=x", "", 406},
		{none, "DELETE", leads + "/a" + bad, "nonsense", 406},
		{none, "POST", leads + bad, "nonsense", 406},
		{none, "PUT", leads + "/a" + bad, "nonsense", 406},
		{none, "PATCH", leads + "/a" + bad, mergePatch, 406},
		{none, "PATCH", leads + "/a" + bad, "nonsense", 415}, // the content type selects the meaning of the body
		{"", "GET", leads + "?labelSelector=%3D%3D&resourceVersionMatch=Exact", "", 400},
		{"", "GET", leads + "?watch=1&fieldSelector=x&resourceVersionMatch=Exact", "", 400},
		{"", "GET", leads + "?fieldSelector=a%3Db&resourceVersionMatch=Exact", "", 422},
		{"", "DELETE", leads + "?labelSelector=%3D%3D&resourceVersionMatch=Exact", "", 400},
		// A single object has no list form, but a missing object is reported first.
		{"application/json" + asMetadatas, "GET", leads + "/nope", "", 404},
		{"application/json" + asMetadatas, "GET", leads + "/a", "", 406},
		// A write is not committed if its answer cannot be shown.
		{"application/json" + asMetadatas, "DELETE", leads + "/a", "", 406},
	} {
		if got := s.accept(tt.accept, tt.method, tt.path, tt.contentType, ""); got.code != tt.code {
			t.Errorf("%s %s, for %q: %d, want %d: %s", tt.method, tt.path, tt.accept, got.code, tt.code, got.body)
		}
	}
	s.get(leads + "/a").is(200)
}

// The answer with a deleted object has the revision of the deletion, as the watch event has. A
// dry run has none.
func TestRevisionOfDeletion(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	const path = namespaced + "serviceaccounts"
	created := object.ResourceVersion(s.post(path, `{"metadata":{"name":"x"}}`).is(201).tree())
	if dry := object.ResourceVersion(s.delete(path+"/x?dryRun=All", "").is(200).tree()); dry != created {
		t.Errorf("a dry run answers with revision %s, created at %s", dry, created)
	}
	deleted := s.delete(path+"/x", "").is(200, `"kind":"ServiceAccount"`).tree()
	last, err := s.backend.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	revision := strconv.FormatInt(last, 10)
	if got := object.ResourceVersion(deleted); got == created || got != revision {
		t.Errorf("created at %s, deleted at %s, want %s", created, got, revision)
	}
}
