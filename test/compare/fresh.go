package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// fromCache reports whether a server may answer a step from a stale cache: a read at
// resourceVersion=0, or a watch, which begins with such a read.
func fromCache(step wire.Step) bool {
	_, query, _ := strings.Cut(step.Path, "?")
	values, err := url.ParseQuery(query)
	return err == nil && step.Method == http.MethodGet && (step.Watch || values.Get("resourceVersion") == "0")
}

// wrote records the revision of a write.
func (s *side) wrote(step wire.Step, answer *wire.Answer) {
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	if step.Method != http.MethodGet && answer.Code < http.StatusMultipleChoices &&
		json.Unmarshal(answer.Body, &object) == nil && object.Metadata.ResourceVersion != "" {
		s.latest = object.Metadata.ResourceVersion
	}
}

// catchUp waits until the server's cache has the writes of the sequence, if the server would answer
// the step from its cache. A server answers a read at a minimal revision once it has that revision.
func (s *side) catchUp(ctx context.Context, step wire.Step) {
	if s.latest == "" || !fromCache(step) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	path, _, _ := strings.Cut(step.Path, "?")
	s.client.Do(ctx, wire.Step{Method: http.MethodGet, Path: path + "?resourceVersion=" + s.latest})
}
