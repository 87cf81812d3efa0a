package generate

import (
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/compare/wire"
)

// apply has several managers apply parts of one object, among other writers.
func apply(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("patch") })
	o := g.object(r)
	if g.chance(2) {
		g.post(r, o)
	} else {
		g.room(r)
	}
	for range 1 + g.IntN(4) {
		g.applyOne(r, o, pathOf(r))
	}
	switch g.IntN(4) {
	case 0:
		g.put(r, o)
	case 1:
		g.anyPatch(r, o, pathOf(r))
	}
	if g.chance(2) {
		g.applyOne(r, o, pathOf(r))
	}
}

// applyOne adds an apply of a part of an object.
func (g *G) applyOne(r *Resource, o map[string]any, path string) int {
	o = clone(o).(map[string]any)
	if !g.chance(4) {
		g.mutate(o, r.Schema)
	}
	if g.chance(2) {
		g.drop(o)
	}
	m := at(o, "metadata")
	switch g.IntN(16) {
	case 0:
		m["managedFields"] = one[any](g, []any{}, nil, g.managed(r))
	case 1:
		delete(o, one(g, "apiVersion", "kind", "metadata"))
	case 2:
		m["name"] = one[any](g, "other", nil, "")
	case 3:
		m["resourceVersion"] = one(g, "1", wire.Refer(len(g.steps), "metadata.resourceVersion"), "x")
	case 4:
		m["uid"] = one(g, "x", wire.Refer(len(g.steps), "metadata.uid"))
	case 5:
		m["namespace"] = one(g, "default", wire.Scope)
	case 6:
		m["finalizers"] = g.finalizers()
	case 7:
		m["ownerReferences"] = g.owners()
	}
	q := "?fieldManager=" + one(g, "one", "two", "three", "one")
	if g.chance(3) {
		q += "&force=true"
	} else if g.chance(20) {
		q += one(g, "&force=false", "&force=x", "&force=", "&dryRun=All&force=true", "&fieldValidation=Ignore", "&fieldValidation=Warn")
	}
	if g.chance(20) {
		q = one(g, "", "?force=true", "?fieldManager=")
	}
	header, document := typed(applyPatch), encode(o)
	if g.chance(4) {
		if text, err := yaml.JSONToYAML(document); err == nil {
			document = text
		}
	}
	if g.chance(30) {
		header = typed(one(g, "application/apply-patch+cbor", "application/apply-patch+json", applyPatch+"; charset=utf-8"))
	}
	return g.add(wire.Step{Kind: "apply", Resource: r.Label(), Method: "PATCH", Path: path + q, Header: header, Body: document})
}

// drop removes some fields of an object, but not its type and name.
func (g *G) drop(o map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		m, ok := o[name].(map[string]any)
		switch {
		case name == "apiVersion" || name == "kind" || name == "metadata":
		case ok && g.chance(2):
			for _, inner := range slices.Sorted(maps.Keys(m)) {
				if g.chance(2) {
					delete(m, inner)
				}
			}
		case g.chance(3):
			delete(o, name)
		}
	}
}
