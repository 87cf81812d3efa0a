package generate

import (
	"fmt"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

func text(v any) string { return fmt.Sprint(v) }

// write creates and replaces objects, valid and invalid.
func write(g *G) {
	r := g.resource(creatable)
	o := g.object(r)
	if g.chance(2) || !editable(r) {
		g.create(r, o)
		return
	}
	g.post(r, o)
	for range 1 + g.IntN(3) {
		g.put(r, o)
	}
	if g.chance(3) {
		g.get(r)
	}
}

// create adds one or two creates of an object, mutated.
func (g *G) create(r *Resource, o map[string]any) {
	g.room(r)
	o = clone(o).(map[string]any)
	if !g.chance(5) {
		g.mutate(o, r.Schema)
	}
	kind := "post"
	m := at(o, "metadata")
	switch g.IntN(16) {
	case 0:
		delete(m, "name")
		m["generateName"] = wire.Scope + one(g, "-", ".", "-a-", strings.Repeat("g", 240), "_")
	case 1:
		m["generateName"] = g.name()
	case 2:
		m["resourceVersion"] = one(g, "1", "0", "", "x", "99999999")
		kind = "post with resourceVersion"
	case 3:
		m["namespace"] = one(g, "default", "", wire.Scope, "other")
	case 4:
		m["uid"] = one(g, "01234567-89ab-cdef-0123-456789abcdef", "x", "")
	case 5:
		m["ownerReferences"] = g.owners()
	case 6:
		m["finalizers"] = g.finalizers()
	case 7:
		m["managedFields"] = g.managed(r)
		kind = "post with managedFields"
	case 8:
		g.systemFields(m)
	case 9:
		m["name"] = g.name()
	}
	path := r.Path(namespaceOf(r), "")
	if g.chance(25) {
		path = r.Path("", "") // without a namespace
	}
	g.add(wire.Step{Kind: kind, Resource: r.Label(), Method: "POST", Path: path + g.writeQuery(), Header: typed("application/json"), Body: encode(o)})
	if g.chance(3) {
		g.add(wire.Step{Kind: kind, Resource: r.Label(), Method: "POST", Path: path, Header: typed("application/json"), Body: encode(o)})
	}
}

// put adds a request that replaces the object of the sequence.
func (g *G) put(r *Resource, o map[string]any) int {
	o = clone(o).(map[string]any)
	if !g.chance(6) {
		g.mutate(o, r.Schema)
	}
	m := at(o, "metadata")
	kind := "put"
	switch g.IntN(14) {
	case 0, 1, 2:
		m["resourceVersion"] = wire.Refer(len(g.steps), "metadata.resourceVersion")
	case 3:
		m["resourceVersion"] = one(g, "1", "0", "x", "999999999", "-1")
		kind = "put with resourceVersion"
	case 4:
		m["uid"] = one(g, wire.Refer(len(g.steps), "metadata.uid"), "01234567-89ab-cdef-0123-456789abcdef")
	case 5:
		m["name"] = one(g, "other", "", "UPPER")
	case 6:
		m["namespace"] = one(g, "default", "other", "")
	case 7:
		g.systemFields(m)
	case 8:
		m["managedFields"] = g.managed(r)
		kind = "put with managedFields"
	case 9:
		m["finalizers"] = g.finalizers()
	case 10:
		m["ownerReferences"] = g.owners()
	case 11:
		delete(m, "labels")
	}
	path := pathOf(r)
	if g.chance(15) {
		path = r.Path(namespaceOf(r), one(g, wire.Scope+"-new", wire.Scope+"-new", "UPPER"))
		kind = "put of another name"
	}
	return g.add(wire.Step{Kind: kind, Resource: r.Label(), Method: "PUT", Path: path + g.writeQuery(), Header: typed("application/json"), Body: encode(o)})
}

func (g *G) finalizers() any {
	return one[any](g, []any{"example.com/a"}, []any{"example.com/a", "example.com/b"}, []any{"bare"}, []any{""}, []any{"a/b/c"},
		[]any{"example.com/a", "example.com/a"}, []any{}, nil, "x", []any{"kubernetes"})
}

func (g *G) owners() any {
	// This owner exists: anykind collects objects without owners, and kube-apiserver leaves that to
	// another program.
	owner := map[string]any{"apiVersion": "v1", "kind": "Namespace", "name": wire.Elsewhere, "uid": wire.Refer(0, "metadata.uid")}
	switch g.IntN(6) {
	case 0:
		delete(owner, one(g, "apiVersion", "kind", "name", "uid"))
	case 1:
		owner["controller"] = true
		return []any{owner, clone(owner)}
	case 2:
		owner["apiVersion"] = one(g, "a/b/c", "", "v1")
		owner["kind"] = one(g, "Event", "")
	case 3:
		owner["blockOwnerDeletion"] = true
		owner["extra"] = 1
	case 4:
		return []any{owner, clone(owner)}
	}
	return []any{owner}
}

func (g *G) managed(r *Resource) any {
	entry := map[string]any{"manager": "m", "operation": "Update", "apiVersion": r.APIVersion(), "time": "2020-01-02T03:04:05Z",
		"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{"f:a": map[string]any{}}}}}
	switch g.IntN(8) {
	case 0:
		delete(entry, one(g, "manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"))
	case 1:
		entry["operation"] = one(g, "Apply", "Bogus", "")
	case 2:
		entry["apiVersion"] = one(g, "v9", "x/y/z", "other.example.com/v1")
	case 3:
		entry["fieldsV1"] = one[any](g, map[string]any{"f:spec": 1}, map[string]any{"bogus": map[string]any{}}, map[string]any{"k:{}": map[string]any{}}, map[string]any{"k:{\"a\":": map[string]any{}}, map[string]any{".": map[string]any{}})
	case 4:
		return []any{}
	case 5:
		return []any{map[string]any{}}
	case 6:
		entry["subresource"] = one(g, "status", "bogus", "scale")
	}
	return []any{entry}
}

// systemFields sets metadata fields that belong to the server.
func (g *G) systemFields(m map[string]any) {
	switch g.IntN(6) {
	case 0:
		m["creationTimestamp"] = one[any](g, "2020-01-02T03:04:05Z", nil, "x", "")
	case 1:
		m["deletionTimestamp"] = one[any](g, "2020-01-02T03:04:05Z", nil, "x")
	case 2:
		m["deletionGracePeriodSeconds"] = one[any](g, 0, 10, -1, "x")
	case 3:
		m["generation"] = one[any](g, 7, -1, 0, "x")
	case 4:
		m["selfLink"] = "/x"
	case 5:
		m["annotations"] = one[any](g, map[string]any{"a": strings.Repeat("x", 300<<10)}, map[string]any{"a/b/c": "x"}, map[string]any{"": "x"}, map[string]any{"a": nil}, map[string]any{"a": 1}, []any{}, map[string]any{"UPPER/x": "y", "a b": "c"})
	}
}

// stepOf returns a request that restores an object.
func stepOf(g *G, r *Resource, o map[string]any) wire.Step {
	return wire.Step{Kind: "put", Resource: r.Label(), Method: "PUT", Path: pathOf(r) + one(g, "", "?fieldManager=one"), Header: typed("application/json"), Body: encode(o)}
}
