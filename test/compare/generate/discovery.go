package generate

import (
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// discovery requests the discovery documents. A group that only one server has is no difference, so
// only the headers are compared for the documents of all groups.
func discovery(g *G) {
	for range 3 {
		r := g.resource(nil)
		paths := []string{r.Root(), "/apis/rich.example.com/v1", "/apis/plain.example.com", "/apis/rich.example.com", "/apis/plain.example.com/v2", "/apis/coordination.k8s.io/v1"}
		kind := "discovery"
		if g.chance(3) {
			kind = "openapi"
			paths = []string{"/openapi/v3" + r.Root(), "/openapi/v3/apis/rich.example.com/v1", "/openapi/v3/apis/plain.example.com/v1", "/openapi/v3/apis/rich.example.com/v1alpha1", "/openapi/v3/apis/bogus/v1", "/openapi/v3/apis", "/openapi/v3/", "/openapi/v3x", "/openapi", "/openapi/v2/", "/openapi/v3/apis/rich.example.com/v1?hash=x", "/openapi/v2", "/openapi/v3"}
		} else if g.chance(3) {
			kind = "discovery of all"
			paths = []string{"/apis", "/api", "/api/", "/apis/", "/api/v1"}
		}
		if g.chance(12) {
			kind, paths = "pages", []string{"/version", "/healthz", "/livez", "/readyz", "/healthz?verbose", "/", "/metrics/", "/.well-known/openid-configuration"}
		}
		var header []wire.Field
		if g.chance(2) {
			accept := one(g, accepts...)
			if g.chance(3) {
				accept = "application/json;g=apidiscovery.k8s.io;v=" + one(g, "v2", "v2beta1", "v3") + ";as=APIGroupDiscoveryList" + one(g, "", ",application/json", ";profile=nopeer")
			}
			header = append(header, wire.Field{Name: "Accept", Value: accept})
		}
		if g.chance(8) {
			header = append(header, wire.Field{Name: "If-None-Match", Value: one(g, `"x"`, "*", "x", `W/"x"`)})
		}
		p := one(g, paths...)
		if strings.HasPrefix(p, "/openapi/v3") && kind == "openapi" && len(p) > 12 && !strings.Contains(p, "example.com") {
			kind = "openapi of built-in kinds"
		}
		around := kind != "discovery" && kind != "openapi" || strings.HasPrefix(p, r.Root()) && !r.Custom || p == "/openapi/v2" || p == "/openapi/v3"
		g.add(wire.Step{Kind: kind, Around: around, Method: one(g, "GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS"), Path: p, Header: header, HTTP1: g.chance(8)})
	}
}
