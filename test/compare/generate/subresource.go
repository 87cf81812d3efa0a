package generate

import (
	"github.com/anykind/anykind/test/compare/wire"
)

// subresource reads and writes status, scale and the other subresources of a kind.
func subresource(g *G) {
	r := g.resource(func(r *Resource) bool {
		return editable(r) && (r.Has("status") || r.Has("scale") || r.Has("token") || r.Custom)
	})
	o := g.object(r)
	if r.Kind == "Widget" && r.Version == "v1" && g.chance(2) {
		o["status"] = map[string]any{"replicas": 3, "selector": "a=b"}
	}
	g.post(r, o)
	for range 2 + g.IntN(4) {
		which := one(g, "status", "scale", "status", "scale")
		if len(r.Subresources) > 0 && !g.chance(8) {
			which = one(g, r.Subresources...)
		}
		switch which {
		case "scale":
			g.scale(r)
		case "status":
			g.status(r, o)
		default:
			g.other(r, which)
		}
	}
	if g.chance(2) {
		g.get(r)
	}
}

// proper are valid requests to other subresources.
var proper = map[string]wire.Step{
	"token":    {Method: "POST", Body: []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`)},
	"eviction": {Method: "POST", Body: []byte(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"` + wire.Scope + `"}}`)},
	"binding":  {Method: "POST", Body: []byte(`{"apiVersion":"v1","kind":"Binding","metadata":{"name":"` + wire.Scope + `"},"target":{"kind":"Node","name":"node-1"}}`)},
	"ephemeralcontainers": {Method: "PATCH", Header: typed(strategicPatch),
		Body: []byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"example.com/debug"}]}}`)},
	"resize": {Method: "PATCH", Header: typed(strategicPatch),
		Body: []byte(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"1"}}}]}}`)},
	"log":         {Method: "GET", Path: "?container=main&tailLines=1"},
	"exec":        {Method: "POST", Path: "?container=main&command=ls&stdout=true"},
	"attach":      {Method: "POST", Path: "?container=main&stdout=true"},
	"portforward": {Method: "POST", Path: "?ports=80"},
	"proxy":       {Method: "GET", Path: "/path?a=b"},
}

// other sends a request to a subresource without a form of its own: an empty object with any method, or
// a valid request. A request may then use a token that it gets.
func (g *G) other(r *Resource, which string) {
	step := wire.Step{Method: one(g, "GET", "PUT", "POST", "PATCH", "DELETE"), Header: typed("application/json"), Body: []byte("{}")}
	if s, ok := proper[which]; ok && !g.chance(3) {
		step = s
		if step.Header == nil && step.Body != nil {
			step.Header = typed("application/json")
		}
	}
	step.Kind, step.Resource, step.Path = which, r.Label(), pathOf(r, which)+step.Path
	id := g.add(step)
	if which == "token" && step.Method == "POST" && g.chance(2) {
		g.add(wire.Step{Kind: "get", Resource: r.Label(), Method: "GET", Path: pathOf(r), Header: bearer(wire.Refer(id, "status.token"))})
	}
}

func (g *G) status(r *Resource, o map[string]any) {
	path := pathOf(r, "status")
	switch g.IntN(6) {
	case 0:
		g.add(wire.Step{Kind: "status get", Resource: r.Label(), Method: one(g, "GET", "HEAD", "DELETE", "POST", "OPTIONS"), Path: path, Header: g.view(false)})
		return
	case 1:
		g.anyPatch(r, o, path)
	case 2:
		g.applyOne(r, o, path)
	default:
		o = clone(o).(map[string]any)
		o["status"] = g.value(r.Schema.property("status"), 0)
		if r.Kind == "Widget" {
			o["status"] = one[any](g, map[string]any{"replicas": 5, "selector": "a=b", "phase": "Ready"}, map[string]any{"conditions": []any{map[string]any{"type": "A", "status": "True"}}}, map[string]any{"replicas": 2000}, map[string]any{"phase": "x"}, o["status"])
		}
		if g.chance(2) {
			g.mutate(o, r.Schema)
		}
		switch m := at(o, "metadata"); g.IntN(8) {
		case 0:
			m["labels"] = map[string]any{"changed": "by-status"}
		case 1:
			m["finalizers"] = []any{"example.com/x"}
		case 2:
			m["resourceVersion"] = one(g, "1", wire.Refer(len(g.steps), "metadata.resourceVersion"))
		case 3:
			m["managedFields"] = []any{}
		}
		g.add(wire.Step{Kind: "put", Resource: r.Label(), Method: "PUT", Path: path + g.writeQuery(), Header: typed("application/json"), Body: encode(o)})
	}
	g.steps[len(g.steps)-1].Kind = "status " + g.steps[len(g.steps)-1].Kind
}

func (g *G) scale(r *Resource) {
	path := pathOf(r, "scale")
	o := map[string]any{"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": map[string]any{"name": wire.Scope, "namespace": wire.Scope},
		"spec": map[string]any{"replicas": one[any](g, 0, 1, 5, 101, -1, "x", nil, raw("1.5"), 2147483648)}}
	if g.chance(4) {
		g.mutate(o, nil)
	}
	s := wire.Step{Resource: r.Label(), Path: path}
	switch g.IntN(7) {
	case 0, 1:
		s.Kind, s.Method, s.Header = "scale get", one(g, "GET", "GET", "HEAD", "DELETE", "POST"), g.view(false)
	case 2, 3:
		m := at(o, "metadata")
		switch g.IntN(6) {
		case 0:
			m["resourceVersion"] = one(g, "1", wire.Refer(len(g.steps), "metadata.resourceVersion"))
		case 1:
			m["uid"] = one(g, "x", wire.Refer(len(g.steps), "metadata.uid"))
		case 2:
			m["name"] = one(g, "", "other")
		case 3:
			delete(m, "namespace")
		}
		s.Kind, s.Method, s.Path, s.Header, s.Body = "scale put", "PUT", path+g.writeQuery(), typed("application/json"), encode(o)
	case 4:
		s.Kind, s.Method, s.Header, s.Body = "scale apply", "PATCH", typed(applyPatch), encode(o)
		s.Path = path + "?fieldManager=" + one(g, "one", "two") + one(g, "", "&force=true")
	case 5:
		s.Kind, s.Method, s.Header = "scale json-patch", "PATCH", typed(jsonPatch)
		s.Body = encode([]any{map[string]any{"op": one(g, "replace", "add", "remove", "test"), "path": one(g, "/spec/replicas", "/spec", "/status/replicas", "/metadata/name"), "value": one[any](g, 1, 7, "x", nil)}})
	default:
		s.Kind, s.Method, s.Header = "scale merge-patch", "PATCH", typed(one(g, mergePatch, mergePatch, strategicPatch))
		s.Body = encode(map[string]any{"spec": map[string]any{"replicas": one[any](g, 2, 3, "x", nil, -1, 1000)}})
		s.Path = path + g.writeQuery()
	}
	g.add(s)
}
