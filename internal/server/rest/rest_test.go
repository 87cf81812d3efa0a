package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// server is a Handler for two kinds: Lead, which is namespaced and has a status, and Hub, which
// is cluster-scoped.
type server struct {
	t       testing.TB
	backend kv.Backend
	handler http.Handler
	catalog *resource.Catalog
}

func newServer(t testing.TB) *server { return newServerOf(t, lead(), hub()) }

func newServerOf(t testing.TB, definitions ...*resource.Definition) *server {
	t.Helper()
	return newServerOver(t, memkv.New(memkv.Options{}), definitions...)
}

func newServerOver(t testing.TB, backend kv.Backend, definitions ...*resource.Definition) *server {
	t.Helper()
	return newServerWith(t, backend, registry.Options{}, definitions...)
}

func newServerWith(t testing.TB, backend kv.Backend, o registry.Options, definitions ...*resource.Definition) *server {
	t.Helper()
	return newServerServing(t, backend, o, rest.Options{}, definitions...)
}

func newServerServing(t testing.TB, backend kv.Backend, o registry.Options, served rest.Options, definitions ...*resource.Definition) *server {
	t.Helper()
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = backend.Close()
	})
	var catalog resource.Catalog
	set := resource.NewSet(definitions)
	if set.Lookup("", "services") != nil {
		builtin.GiveAddresses(set, cache, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, allocation.PortRange{Base: 30000, Size: 2768}, nil)
	}
	catalog.Swap(set)
	handler := rest.New(registry.New(backend, cache, o), &catalog, served)
	return &server{t: t, backend: backend, handler: handler, catalog: &catalog}
}

func lead() *resource.Definition {
	keepStatus := func(obj, old map[string]any) {
		delete(obj, "status")
		if s, ok := old["status"]; ok {
			obj["status"] = s
		}
	}
	return resource.New(resource.Definition{
		Group: "test.example.com", Plural: "leads", Singular: "lead", Kind: "Lead", ListKind: "LeadList",
		Namespaced: true, HasGeneration: true, StoragePrefix: "/registry/test.example.com/leads/",
		Versions: []*resource.Version{{
			Name: "v1", Served: true, Storage: true,
			Schema:      schemaOf("Lead"),
			Columns:     func() []view.Column { return []view.Column{codec.AgeColumn()} },
			Revert:      resource.Changing(keepStatus),
			ResetFields: []string{"status"},
			Subresources: []resource.Subresource{{
				Name: "status", Verbs: []string{"get", "patch", "update"},
				Revert: resource.Changing(func(obj, old map[string]any) { obj["spec"] = old["spec"] }),
				Fields: []string{"status"},
			}},
		}},
	})
}

func hub() *resource.Definition {
	return resource.New(resource.Definition{
		Group: "test.example.com", Plural: "hubs", Singular: "hub", Kind: "Hub", ListKind: "HubList",
		HasGeneration: true, StoragePrefix: "/registry/test.example.com/hubs/",
		Versions: []*resource.Version{{Name: "v1", Served: true, Storage: true, Schema: schemaOf("Hub")}},
	})
}

func schemaOf(kind string) resource.Schema {
	fields := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"a": {Type: "string"}, "n": {Type: "integer"},
	}}
	return schema.Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) {
		return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"spec": fields, "status": fields,
		}}, nil
	}, model.Kind{Group: "test.example.com", Version: "v1", Kind: kind, ListKind: kind + "List"})
}

const (
	leads = "/apis/test.example.com/v1/namespaces/default/leads"
	all   = "/apis/test.example.com/v1/leads"
	hubs  = "/apis/test.example.com/v1/hubs"
)

// An answer is the answer to a request.
type answer struct {
	t      testing.TB
	code   int
	header http.Header
	body   string
}

// do sends a request. body may be "".
func (s *server) do(method, path, contentType, body string) answer {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return answer{s.t, w.Code, w.Header(), w.Body.String()}
}

func (s *server) get(path string) answer        { return s.do("GET", path, "", "") }
func (s *server) post(path, body string) answer { return s.do("POST", path, "application/json", body) }
func (s *server) put(path, body string) answer  { return s.do("PUT", path, "application/json", body) }
func (s *server) delete(path, body string) answer {
	return s.do("DELETE", path, "application/json", body)
}
func (s *server) merge(path, body string) answer {
	return s.do("PATCH", path, "application/merge-patch+json", body)
}

// is checks the code, and that the body contains all words.
func (a answer) is(code int, words ...string) answer {
	a.t.Helper()
	if a.code != code {
		a.t.Fatalf("code %d, want %d: %s", a.code, code, a.body)
	}
	for _, w := range words {
		if !strings.Contains(a.body, w) {
			a.t.Errorf("%s\nhas no %s", a.body, w)
		}
	}
	return a
}

// tree returns the body as an object.
func (a answer) tree() object.Tree {
	a.t.Helper()
	t, _, err := codec.Decode(codec.JSON, []byte(a.body))
	if err != nil {
		a.t.Fatalf("%v: %s", err, a.body)
	}
	return t
}

// message checks the code and the message of the Status in the body.
func (a answer) message(code int, want string) answer {
	a.t.Helper()
	a.is(code)
	if got, _ := a.tree()["message"].(string); got != want {
		a.t.Errorf("message %q, want %q", got, want)
	}
	return a
}

// named returns the JSON of a Lead.
func named(name string, more ...string) string {
	return object1("Lead", name, more...)
}

func object1(kind, name string, more ...string) string {
	return `{"apiVersion":"test.example.com/v1","kind":"` + kind + `","metadata":{"name":"` + name + `"}` + strings.Join(more, "") + `}`
}

// names returns the names in a list.
func (a answer) names() string {
	a.t.Helper()
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(a.body), &list); err != nil {
		a.t.Fatal(err, a.body)
	}
	var names []string
	for _, i := range list.Items {
		names = append(names, i.Metadata.Name)
	}
	return strings.Join(names, " ")
}

// watch starts a watch over a real connection: it must be read while it is written. next returns
// its events one by one, and "" at the end.
func (s *server) watch(path string) (next func() string) {
	s.t.Helper()
	ts := httptest.NewServer(s.handler)
	s.t.Cleanup(ts.Close)
	ctx, cancel := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(ctx, "GET", ts.URL+path, nil)
	resp, err := ts.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	if resp.StatusCode != 200 {
		body, _ := io.ReadAll(resp.Body)
		s.t.Fatalf("watch: %d %s", resp.StatusCode, body)
	}
	decoder := json.NewDecoder(resp.Body)
	return func() string {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := decoder.Decode(&e); err != nil {
			return ""
		}
		var o struct {
			Metadata struct {
				Name, ResourceVersion string
				Annotations           map[string]string
			}
			Spec   struct{ A string }
			Reason string
		}
		_ = json.Unmarshal(e.Object, &o)
		out := e.Type
		for _, s := range []string{o.Metadata.Name, o.Spec.A, o.Reason, o.Metadata.Annotations["k8s.io/initial-events-end"]} {
			if s != "" {
				out += " " + s
			}
		}
		return out
	}
}
