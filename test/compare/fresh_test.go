package main

import (
	"net/http"
	"testing"

	"github.com/anykind/anykind/test/compare/wire"
)

func TestFromCache(t *testing.T) {
	for _, tt := range []struct {
		step wire.Step
		want bool
	}{
		{wire.Step{Method: "GET", Path: "/api/v1/pods?resourceVersion=0"}, true},
		{wire.Step{Method: "GET", Path: "/api/v1/pods?limit=1&resourceVersion=0"}, true},
		{wire.Step{Method: "GET", Path: "/api/v1/pods?watch=1", Watch: true}, true},
		{wire.Step{Method: "GET", Path: "/api/v1/pods?resourceVersion=07"}, false},
		{wire.Step{Method: "GET", Path: "/api/v1/pods"}, false},
		{wire.Step{Method: "DELETE", Path: "/api/v1/pods?resourceVersion=0"}, false},
	} {
		if got := fromCache(tt.step); got != tt.want {
			t.Errorf("%s %s: %v", tt.step.Method, tt.step.Path, got)
		}
	}
}

// The revision of the last successful write counts, not that of a read or of an error.
func TestWrote(t *testing.T) {
	s := &side{}
	for _, tt := range []struct {
		method string
		code   int
		body   string
		want   string
	}{
		{http.MethodGet, 200, `{"metadata":{"resourceVersion":"1"}}`, ""},
		{http.MethodPost, 201, `{"metadata":{"resourceVersion":"2"}}`, "2"},
		{http.MethodPut, 409, `{"metadata":{"resourceVersion":"3"}}`, "2"},
		{http.MethodDelete, 200, `{"kind":"Status","metadata":{}}`, "2"},
		{http.MethodPatch, 200, `{"metadata":{"resourceVersion":"4"}}`, "4"},
		{http.MethodPatch, 200, "k8s\x00", "4"},
	} {
		if s.wrote(wire.Step{Method: tt.method}, &wire.Answer{Code: tt.code, Body: []byte(tt.body)}); s.latest != tt.want {
			t.Errorf("%s %d %s: %q, want %q", tt.method, tt.code, tt.body, s.latest, tt.want)
		}
	}
}
