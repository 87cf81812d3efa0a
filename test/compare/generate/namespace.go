package generate

import (
	"github.com/anykind/anykind/test/compare/wire"
)

// namespace sends requests in a namespace that is missing, or terminating. An object with a finalizer
// keeps it terminating: the namespace controller is not part of kube-apiserver.
func namespace(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Namespaced && r.Can("patch") })
	o := g.object(r)
	if g.chance(4) {
		// The namespace is missing.
		for range 3 {
			switch g.IntN(4) {
			case 0:
				g.namespaced = true
				g.post(r, o)
			case 1:
				g.applyOne(r, o, pathOf(r))
			case 2:
				g.put(r, o)
			case 3:
				g.list(r, []string{"pretty=false"})
			}
		}
		return
	}
	at(o, "metadata")["finalizers"] = []any{"example.com/hold"}
	g.post(r, o)
	g.ending = true
	// The object's deletion begins first: anykind deletes the objects of a namespace.
	g.add(wire.Step{Kind: "delete", Resource: r.Label(), Method: "DELETE", Path: pathOf(r)})
	g.add(wire.Step{Kind: "delete namespace", Resource: "namespaces", Method: "DELETE", Path: "/api/v1/namespaces/" + wire.Scope + one(g, "", "?dryRun=All", "?propagationPolicy=Background")})
	for range 2 + g.IntN(3) {
		other := clone(o).(map[string]any)
		at(other, "metadata")["name"] = wire.Scope + "-new"
		switch g.IntN(6) {
		case 0, 1:
			g.post(r, other)
		case 2:
			g.applyOne(r, o, r.Path(wire.Scope, wire.Scope+"-new"))
		case 3:
			g.label(r)
		case 4:
			g.add(wire.Step{Kind: "namespace", Resource: "namespaces", Method: "POST", Path: "/api/v1/namespaces", Header: typed("application/json"), Body: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + wire.Scope + `"}}`)})
		case 5:
			g.add(wire.Step{Kind: "namespace finalize", Resource: "namespaces", Method: "PUT", Path: "/api/v1/namespaces/" + wire.Scope + "/finalize", Header: typed("application/json"), Body: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + wire.Scope + `"},"spec":{"finalizers":["kubernetes","example.com/x"]}}`)})
		}
	}
}
