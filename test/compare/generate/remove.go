package generate

import (
	"net/url"

	"github.com/anykind/anykind/test/compare/wire"
)

// remove deletes objects, single ones and collections, also with finalizers.
func remove(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("delete") && r.Plural != "namespaces" })
	o := g.object(r)
	if g.chance(2) {
		at(o, "metadata")["finalizers"] = one[any](g, []any{"example.com/a"}, []any{"example.com/a", "example.com/b"})
	}
	if r.Can("deletecollection") && g.chance(3) {
		g.several(r, o)
		g.deleteMany(r)
		g.list(r, nil)
		return
	}
	g.post(r, o)
	g.deleteOne(r)
	for range g.IntN(4) {
		switch g.IntN(7) {
		case 0, 1:
			g.deleteOne(r)
		case 2:
			g.put(r, o)
		case 3:
			g.anyPatch(r, o, pathOf(r))
		case 4:
			g.add(wire.Step{Kind: "merge-patch", Resource: r.Label(), Method: "PATCH", Path: pathOf(r), Header: typed(mergePatch),
				Body: encode(map[string]any{"metadata": map[string]any{"finalizers": g.finalizers()}})})
		case 5:
			g.applyOne(r, o, pathOf(r))
		case 6:
			g.post(r, o)
		}
	}
	g.get(r)
}

// deleteOptions returns a body for a delete, nil for none.
func (g *G) deleteOptions() []byte {
	options := map[string]any{"apiVersion": one(g, "v1", "v1", "meta.k8s.io/v1"), "kind": "DeleteOptions"}
	switch g.IntN(14) {
	case 0:
		// Orphan and Foreground set a finalizer for the garbage collector, which only one of the
		// servers has.
		options["propagationPolicy"] = one[any](g, "Background", "Background", "bogus", "", nil)
	case 1:
		options["gracePeriodSeconds"] = one[any](g, 0, 10, -1, "x", raw("1.5"))
	case 2:
		options["preconditions"] = map[string]any{"uid": one(g, "01234567-89ab-cdef-0123-456789abcdef", wire.Refer(len(g.steps), "metadata.uid"), "")}
	case 3:
		options["preconditions"] = map[string]any{"resourceVersion": one(g, "1", wire.Refer(len(g.steps), "metadata.resourceVersion"), "", "x")}
	case 4:
		options["dryRun"] = one[any](g, []any{"All"}, []any{}, []any{"bogus"}, "All", []any{"All", "All"})
	case 5:
		options["orphanDependents"] = one[any](g, nil, "x")
	case 6:
		options["kind"] = one(g, "Bogus", "ConfigMap", "")
	case 7:
		options["unknown"] = 1
	case 8:
		options["orphanDependents"], options["propagationPolicy"] = false, "Background"
	case 9:
		options["ignoreStoreReadErrorWithClusterBreakingPotential"] = one[any](g, true, false, "x")
	case 10:
		delete(options, one(g, "kind", "apiVersion"))
	default:
		return nil
	}
	return encode(options)
}

func (g *G) deleteQuery() string {
	if !g.chance(5) {
		return ""
	}
	return "?" + one(g, "dryRun=All", "dryRun=x", "propagationPolicy=Background", "propagationPolicy=bogus", "gracePeriodSeconds=0", "gracePeriodSeconds=5", "gracePeriodSeconds=-1", "gracePeriodSeconds=x", "orphanDependents=false", "resourceVersion=1", "fieldValidation=Strict", "pretty=true")
}

func (g *G) deleteOne(r *Resource) {
	body := g.deleteOptions()
	var header []wire.Field
	if body != nil {
		header = typed(one(g, "application/json", "application/json", "application/json", "application/yaml"))
	}
	g.add(wire.Step{Kind: "delete", Resource: r.Label(), Method: "DELETE", Path: pathOf(r) + g.deleteQuery(), Header: header, Body: body})
}

func (g *G) deleteMany(r *Resource) {
	var q []string
	if !r.Namespaced || r.crowded() {
		q = append(q, "labelSelector="+url.QueryEscape("scope="+wire.Scope))
	} else if g.chance(2) {
		q = append(q, one(g, "labelSelector=even", "labelSelector=x", "fieldSelector=metadata.name%3D"+wire.Scope+"-d", "limit=1", "dryRun=All", "propagationPolicy=Background", "fieldSelector=bogus", "resourceVersion=1", "resourceVersion=0", "labelSelector=a%20b", "continue=x", "gracePeriodSeconds=3", "timeoutSeconds=1"))
	}
	body := g.deleteOptions()
	var header []wire.Field
	if body != nil {
		header = typed("application/json")
	}
	g.add(wire.Step{Kind: "deletecollection", Resource: r.Label(), Method: "DELETE", Path: r.Path(namespaceOf(r), "") + joined(q), Header: header, Body: body})
}
