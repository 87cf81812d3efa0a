package openapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/aggregate/published"
	"github.com/anykind/anykind/internal/server/openapi/openapitest"
)

// A neighbour is a server with its own documents.
type neighbour struct {
	service *aggregate.Service
	whole   string
}

func (n *neighbour) Documents(context.Context) map[string]published.Document {
	return map[string]published.Document{
		"apis/near.dev/v1": {URL: "/openapi/v3/apis/near.dev/v1?hash=1", Service: n.service},
		"apis/near.dev/v2": {URL: "/openapi/v3/apis/near.dev/v2?hash=3", Service: n.service, Hash: "3"},
		"apis":             {URL: "/openapi/v3/apis?hash=2", Service: n.service},
	}
}

func (n *neighbour) DocumentsV2(context.Context) []published.DocumentV2 {
	if n.whole == "" {
		return nil
	}
	return []published.DocumentV2{{Services: []*aggregate.Service{n.service}, JSON: []byte(n.whole), Sum: sha256.Sum256([]byte(n.whole))}}
}

func (n *neighbour) Forward(s *aggregate.Service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("of " + s.Name)) })
}

const (
	taken = "io.k8s.apimachinery.pkg.apis.meta.v1.GroupVersionForDiscovery"
	near  = `{"swagger":"2.0","info":{"title":"Near","version":"1"},"paths":{
		"/apis/near.dev/v1/things":{"get":{"operationId":"listThings","responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/dev.near.Thing"}}}}},
		"/apis/apps/v1/deployments":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/dev.near.Lie"}}}}}},
		"definitions":{
			"dev.near.Thing":{"type":"object","properties":{"gv":{"$ref":"#/definitions/` + taken + `"},"patch":{"$ref":"#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"}}},
			"dev.near.Lie":{"type":"object"},
			"` + taken + `":{"type":"string","description":"something else"},
			"io.k8s.apimachinery.pkg.apis.meta.v1.Patch":{"description":"Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.","type":"object"}}}`
)

func newNeighbour(t *testing.T, whole string) (*Handler, *neighbour) {
	n := &neighbour{service: &aggregate.Service{Name: "v1.near.dev", Group: "near.dev", Version: "v1"}, whole: whole}
	return New(openapitest.Catalog(t), Options{Aggregated: n}), n
}

// Version 3 documents of other servers are listed and forwarded, except those that this server
// serves itself.
func TestDocumentsOfOthers(t *testing.T) {
	h, _ := newNeighbour(t, "")
	list := ask(h, "GET", "/openapi/v3").Body.String()
	if !strings.Contains(list, `"apis/near.dev/v1":{"serverRelativeURL":"/openapi/v3/apis/near.dev/v1?hash=1"}`) || strings.Contains(list, "hash=2") {
		t.Error(list)
	}
	if got := ask(h, "GET", "/openapi/v3/apis/near.dev/v1?hash=1").Body.String(); got != "of v1.near.dev" {
		t.Error(got)
	}
	if got := ask(h, "GET", "/openapi/v3/apis").Body.String(); !strings.HasPrefix(got, `{"openapi":`) {
		t.Error(got)
	}
}

// The document of a server with only version 2 is converted, in both formats.
func TestDocumentOfVersion2(t *testing.T) {
	h, n := newNeighbour(t, near)
	w := ask(h, "GET", "/openapi/v3/apis/near.dev/v2?hash=3")
	var doc struct {
		OpenAPI    string
		Paths      map[string]any
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.") || len(doc.Paths) != 1 || doc.Paths["/apis/near.dev/v1/things"] == nil || doc.Components.Schemas["dev.near.Thing"] == nil {
		t.Error(w.Body)
	}
	if got := w.Header().Get("ETag"); got != `"3"` {
		t.Error(got)
	}
	if w := ask(h, "GET", "/openapi/v3/apis/near.dev/v2?hash=old"); w.Code != http.StatusMovedPermanently {
		t.Error(w.Code)
	}
	if w := ask(h, "GET", "/openapi/v3/apis/near.dev/v2", "Accept: application/com.github.proto-openapi.spec.v3.v1.0+protobuf"); w.Code != 200 || !strings.Contains(w.Body.String(), "dev.near.Thing") {
		t.Error(w.Code)
	}
	n.whole = ""
	if w := ask(h, "GET", "/openapi/v3/apis/near.dev/v2"); w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
}

// Version 2 contains the versions of other servers and nothing else of them. A definition whose
// name is taken is renamed.
func TestWholeWithOthers(t *testing.T) {
	alone, _ := newNeighbour(t, "")
	h, n := newNeighbour(t, near)
	w := ask(h, "GET", "/openapi/v2")
	var doc struct {
		Paths       map[string]any
		Definitions map[string]map[string]any
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Paths["/apis/near.dev/v1/things"] == nil || doc.Paths["/apis/apps/v1/deployments"] != nil || doc.Paths["/apis/coordination.k8s.io/v1/leases"] == nil {
		t.Error("not the paths of both")
	}
	if got := doc.Definitions[taken+"_v2"]["description"]; got != "something else" {
		t.Errorf("the definition with a name that was taken is %v", got)
	}
	if got := doc.Definitions[taken]["type"]; got != "object" {
		t.Errorf("the definition of this server is %v", got)
	}
	thing, _ := json.Marshal(doc.Definitions["dev.near.Thing"])
	if !strings.Contains(string(thing), taken+`_v2"`) || doc.Definitions["dev.near.Lie"] != nil {
		t.Errorf("%s, %v", thing, doc.Definitions["dev.near.Lie"])
	}
	if doc.Definitions["io.k8s.apimachinery.pkg.apis.meta.v1.Patch_v2"] != nil {
		t.Error("a definition that differs in words only has two names")
	}
	if ask(alone, "GET", "/openapi/v2").Header().Get("ETag") == w.Header().Get("ETag") {
		t.Error("the ETag is that of the document without the others")
	}
	if p := ask(h, "GET", "/openapi/v2", "Accept: application/com.github.proto-openapi.spec.v2.v1.0+protobuf"); p.Code != 200 || !strings.Contains(p.Body.String(), "/apis/near.dev/v1/things") {
		t.Error(p.Code, "the path is missing in protobuf")
	}
	n.whole = `{"paths": 5}`
	if w := ask(h, "GET", "/openapi/v2"); w.Code != 200 || strings.Contains(w.Body.String(), "near.dev") {
		t.Error("what is no OpenAPI is in the document")
	}
}
