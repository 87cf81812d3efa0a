package server

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/kubernetes"
)

// /statusz and /flagz answer with text, or with an object if the client requests it.
func TestZPages(t *testing.T) {
	o := everyone(nothing)
	o.FlagValues = map[string]string{"v": "2", "bind-address": "127.0.0.1"}
	s := New(o)
	const deprecated = `299 - "This version of the statusz endpoint is deprecated. Please use a newer version."`
	tests := []struct {
		path, accept, contentType, want, warning string
		code                                     int
	}{
		{path: "/statusz", code: 200, contentType: "text/plain; charset=utf-8", want: "Emulation version: " + kubernetes.Name},
		{path: "/statusz", accept: "*/*", code: 200, contentType: "text/plain; charset=utf-8", want: "\napiserver statusz\n"},
		{path: "/flagz", accept: "text/plain", code: 200, contentType: "text/plain; charset=utf-8", want: "\nbind-address=127.0.0.1\nv=2\n"},
		{path: "/flagz", accept: "application/json", code: 406, contentType: "application/json",
			want: "only the following media types are accepted: application/json, application/yaml, text/plain"},
		{path: "/flagz", accept: "application/json;g=config.k8s.io;v=v1;as=Flagz", code: 406, contentType: "application/json"},
		{path: "/flagz", accept: "application/vnd.kubernetes.protobuf;g=config.k8s.io;v=v1beta1;as=Flagz", code: 406, contentType: "application/json"},
		{path: "/flagz", accept: "application/json;g=config.k8s.io;v=v1beta1;as=Flagz", code: 200,
			contentType: "application/json;g=config.k8s.io;v=v1beta1;as=Flagz",
			want:        `{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"apiserver"},"flags":{"bind-address":"127.0.0.1","v":"2"}}`},
		{path: "/statusz", accept: "application/yaml;g=config.k8s.io;v=v1alpha1;as=Statusz", code: 200, warning: deprecated,
			contentType: "application/yaml;g=config.k8s.io;v=v1alpha1;as=Statusz", want: `emulationVersion: "` + kubernetes.Name + `"`},
		{path: "/statusz", accept: "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", code: 200,
			contentType: "application/json;g=config.k8s.io;v=v1beta1;as=Statusz", want: `"binaryVersion":"` + kubernetes.Number + `"`},
	}
	for _, test := range tests {
		r := newRequest("GET", test.path, "bob")
		if test.accept != "" {
			r.Header.Set("Accept", test.accept)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		h := w.Header()
		if w.Code != test.code || h.Get("Content-Type") != test.contentType || h.Get("Warning") != test.warning || !strings.Contains(w.Body.String(), test.want) {
			t.Errorf("%s as %q: %d %v %s", test.path, test.accept, w.Code, h, w.Body)
		}
	}
	r := newRequest("GET", "/statusz", "bob")
	r.Header.Set("Accept", "application/json;g=config.k8s.io;v=v1beta1;as=Statusz")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	var shown map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &shown); err != nil || shown["startTime"] == nil || shown["uptimeSeconds"] == nil || len(shown["paths"].([]any)) != 7 {
		t.Errorf("%v, %s", err, w.Body)
	}
	want := `apiserver_request_total{code="200",component="apiserver",dry_run="",group="config.k8s.io",resource="flagz",scope="",subresource="",verb="GET",version="v1beta1"} 1`
	if got := ask(s, "GET", "/metrics", "bob").Body.String(); !strings.Contains(got, want) {
		t.Errorf("metrics do not have %s", want)
	}
}

// The log level can be changed at run time.
func TestVerbosity(t *testing.T) {
	o, level := everyone(nothing), 0
	o.SetVerbosity = func(v int) { level = v }
	s := New(o)
	tests := []struct {
		method, body string
		code         int
		want         string
	}{
		{"GET", "", 406, "unsupported http method\n"},
		{"PUT", "x", 400, "strconv.ParseUint: parsing \"x\": invalid syntax\n"},
		{"PUT", "4", 200, "successfully set klog.logging.verbosity to 4\n"},
	}
	for _, test := range tests {
		r := httptest.NewRequest(test.method, "/debug/flags/v", strings.NewReader(test.body))
		r.Header.Set("Authorization", "Bearer bob")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != test.code || w.Body.String() != test.want {
			t.Errorf("%s %q: %d %q", test.method, test.body, w.Code, w.Body)
		}
	}
	if level != 4 {
		t.Errorf("the level is %d", level)
	}
	for _, path := range []string{"/debug/flags", "/debug/flags/", "/debug/flags/other"} {
		if w := ask(s, "GET", path, "bob"); w.Code != 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
