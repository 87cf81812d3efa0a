package generate

import (
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

const (
	jsonPatch      = "application/json-patch+json"
	mergePatch     = "application/merge-patch+json"
	strategicPatch = "application/strategic-merge-patch+json"
	applyPatch     = "application/apply-patch+yaml"
)

// patch changes an object by patches of all three kinds.
func patch(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("patch") })
	o := g.object(r)
	g.post(r, o)
	for range 1 + g.IntN(4) {
		g.anyPatch(r, o, pathOf(r))
	}
	if g.chance(3) {
		g.get(r)
	}
}

// anyPatch adds a patch of the object at a path.
func (g *G) anyPatch(r *Resource, o map[string]any, path string) int {
	var kind string
	var document any
	switch g.IntN(3) {
	case 0:
		kind, document = jsonPatch, g.jsonPatch(r, o)
	case 1:
		kind, document = mergePatch, g.mergePatch(r, o)
	default:
		kind, document = strategicPatch, g.strategicPatch(r, o)
		if r.Custom && !g.chance(6) {
			kind, document = mergePatch, g.mergePatch(r, o)
		}
	}
	short := strings.TrimSuffix(strings.TrimPrefix(kind, "application/"), "+json")
	return g.add(wire.Step{Kind: short, Resource: r.Label(), Method: "PATCH", Path: path + g.writeQuery(), Header: typed(kind), Body: encode(document)})
}

func (g *G) jsonPatch(r *Resource, o map[string]any) any {
	if g.chance(30) {
		return one[any](g, []any{}, map[string]any{}, nil, []any{nil}, []any{1}, "x", []any{map[string]any{}}, []any{map[string]any{"op": "add"}})
	}
	var out []any
	all := spots(o, r.Schema, nil)
	for range 1 + g.IntN(3) {
		at := one(g, all...)
		to := pointer(at.path)
		switch g.IntN(8) {
		case 0:
			to = pointer(at.path[:len(at.path)-1]) + "/" + one(g, "-", "new", "0", "1", "99", "-1", "01", "")
		case 1:
			to = one(g, "", "/", "/metadata/labels/x", "/metadata/annotations/x", "/spec", "/status", "/metadata/name", "/metadata/finalizers/-", "/metadata", "/none/x", "metadata", "/metadata/labels/a~1b", "/metadata/labels/~2", "/metadata/resourceVersion", "/metadata/managedFields", "/metadata/managedFields/0")
		}
		op := map[string]any{"op": one(g, "add", "replace", "remove", "test", "copy", "move", "add", "replace"), "path": to}
		switch op["op"] {
		case "add", "replace":
			op["value"] = g.value(at.schema, 2)
		case "test":
			op["value"] = at.get()
			if g.chance(2) {
				op["value"] = g.anything(3)
			}
		case "copy", "move":
			op["from"] = pointer(one(g, all...).path)
		}
		if g.chance(25) {
			op[one(g, "op", "path", "value", "from", "extra")] = one[any](g, "bogus", 1, nil)
		}
		if g.chance(25) {
			delete(op, one(g, "op", "path", "value", "from"))
		}
		out = append(out, op)
	}
	return out
}

func (g *G) mergePatch(r *Resource, o map[string]any) any {
	if g.chance(30) {
		return one[any](g, map[string]any{}, []any{}, nil, 1, "x", map[string]any{"metadata": nil}, map[string]any{"spec": nil}, map[string]any{"kind": nil}, map[string]any{"apiVersion": "v9"})
	}
	changed := clone(o).(map[string]any)
	g.mutate(changed, r.Schema)
	patch := difference(o, changed)
	if g.chance(6) {
		g.addField(patch, r.Schema)
	}
	m := at(patch, "metadata")
	switch g.IntN(16) {
	case 0:
		m["resourceVersion"] = one[any](g, wire.Refer(len(g.steps), "metadata.resourceVersion"), "1", "x", nil, "0", "")
	case 1:
		m["uid"] = one[any](g, wire.Refer(len(g.steps), "metadata.uid"), "x", nil)
	case 2:
		m["name"] = one[any](g, "other", nil, "")
	case 3:
		m["finalizers"] = g.finalizers()
	case 4:
		m["ownerReferences"] = g.owners()
	case 5:
		m["managedFields"] = one[any](g, nil, []any{}, []any{map[string]any{}}, g.managed(r))
	case 6:
		g.systemFields(m)
	case 7:
		m["labels"] = one[any](g, nil, map[string]any{"a": nil}, map[string]any{"a": 1}, map[string]any{"x y": "z"}, map[string]any{"a": "b c"})
	case 8:
		m["annotations"] = one[any](g, nil, map[string]any{"a": "b"}, map[string]any{"a": map[string]any{}})
	default:
		if len(m) == 0 {
			delete(patch, "metadata")
		}
	}
	return patch
}

// difference returns the merge patch from a to b.
func difference(a, b map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range b {
		was, both := a[name]
		wasObject, _ := was.(map[string]any)
		object, _ := v.(map[string]any)
		switch {
		case both && string(encode(was)) == string(encode(v)):
		case wasObject != nil && object != nil:
			out[name] = difference(wasObject, object)
		default:
			out[name] = v
		}
	}
	for name := range a {
		if _, still := b[name]; !still {
			out[name] = nil
		}
	}
	return out
}

// strategicPatch returns a strategic merge patch with directives.
func (g *G) strategicPatch(r *Resource, o map[string]any) any {
	patch := g.mergePatch(r, o)
	if g.chance(2) {
		return patch
	}
	all := spots(patch, r.Schema, nil)
	into, _ := patch.(map[string]any)
	if len(all) > 0 {
		if m, ok := one(g, all...).get().(map[string]any); ok {
			into = m
		}
	}
	if into == nil {
		return patch
	}
	switch g.IntN(6) {
	case 0:
		into["$patch"] = one[any](g, "replace", "merge", "delete", "bogus", 1, nil)
	case 1:
		into["$retainKeys"] = one[any](g, []any{"a"}, []any{}, "x", []any{1})
	case 2:
		into["$deleteFromPrimitiveList/finalizers"] = one[any](g, []any{"example.com/a"}, "x", nil)
	case 3:
		into["$setElementOrder/"+one(g, "ports", "finalizers", "secrets", "x")] = one[any](g, []any{"a"}, []any{map[string]any{"port": 80}}, []any{map[string]any{"name": "b"}, map[string]any{"name": "a"}}, "x")
	case 4:
		list := []any{map[string]any{"$patch": one[any](g, "delete", "replace", "merge", "bogus"), one(g, "name", "port", "uid", "containerPort"): one[any](g, "a", 80)}}
		into[one(g, "ports", "secrets", "imagePullSecrets", "ownerReferences", "endpoints")] = list
	case 5:
		into["$bogus"] = one[any](g, nil, 1, []any{})
	}
	return patch
}
