package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// fromCache reports whether a server may answer a step with what it knew some time ago: a read at
// resourceVersion=0, or a watch, which begins with that.
func fromCache(step wire.Step) bool {
	_, query, _ := strings.Cut(step.Path, "?")
	values, err := url.ParseQuery(query)
	return err == nil && step.Method == http.MethodGet && (step.Watch || values.Get("resourceVersion") == "0")
}

// wrote remembers the revision of a write.
func (s *side) wrote(step wire.Step, answer *wire.Answer) {
	var object struct {
		Metadata struct{ ResourceVersion string }
	}
	if step.Method != http.MethodGet && answer.Code < http.StatusMultipleChoices &&
		json.Unmarshal(answer.Body, &object) == nil && object.Metadata.ResourceVersion != "" {
		s.latest = object.Metadata.ResourceVersion
	}
}

// catchUp returns when the server knows what the sequence wrote, where a step would be answered from its cache. A
// server answers a read that asks for a revision when it has it.
func (s *side) catchUp(ctx context.Context, step wire.Step) {
	if s.latest == "" || !fromCache(step) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	path, _, _ := strings.Cut(step.Path, "?")
	s.client.Do(ctx, wire.Step{Method: http.MethodGet, Path: path + "?resourceVersion=" + s.latest})
}
