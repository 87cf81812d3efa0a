package generate

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// watch watches objects during creates, updates and deletes.
func watch(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("watch") && r.Can("patch") })
	o := g.object(r)
	g.room(r)
	if g.chance(2) {
		g.post(r, o)
	}
	for range 1 + g.IntN(2) {
		g.watchOne(r)
	}
	for range 2 + g.IntN(4) {
		switch g.IntN(6) {
		case 0:
			g.post(r, o)
		case 1:
			g.put(r, o)
		case 2:
			g.label(r)
		case 3:
			g.applyOne(r, o, pathOf(r))
		case 4:
			g.anyPatch(r, o, pathOf(r))
		case 5:
			g.deleteOne(r)
		}
	}
	if g.chance(3) {
		g.watchOne(r)
	}
}

// label changes a label that watches select by.
func (g *G) label(r *Resource) {
	value := one(g, `"yes"`, `"no"`, "null")
	g.add(wire.Step{Kind: "merge-patch", Resource: r.Label(), Method: "PATCH", Path: pathOf(r), Header: typed(mergePatch),
		Body: fmt.Appendf(nil, `{"metadata":{"labels":{"even":%s}}}`, value)})
}

// watchOne adds a watch.
func (g *G) watchOne(r *Resource) {
	path := r.Path(namespaceOf(r), "")
	q := []string{one(g, "watch=true", "watch=true", "watch=1", "watch")}
	selectors := []string{}
	if !r.Namespaced || g.chance(8) {
		path = r.Path("", "")
		selectors = append(selectors, "scope="+wire.Scope)
	} else if r.crowded() {
		selectors = append(selectors, "scope="+wire.Scope)
	}
	if g.chance(3) {
		selectors = append(selectors, one(g, "even=yes", "!even", "even in (yes,no)", "a b"))
	}
	if len(selectors) > 0 {
		q = append(q, "labelSelector="+url.QueryEscape(strings.Join(selectors, ",")))
	}
	if g.chance(5) {
		q = append(q, "fieldSelector="+url.QueryEscape(one(g, "metadata.name="+wire.Scope, g.fieldSelector(r))))
	}
	if g.chance(2) {
		q = append(q, "resourceVersion="+one(g, "0", "", wire.Refer(len(g.steps), "metadata.resourceVersion"), wire.Refer(1, "metadata.resourceVersion"), "x", "-1"))
	}
	switch g.IntN(10) {
	case 0:
		q = append(q, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	case 1:
		q = append(q, one(g, "sendInitialEvents=true", "sendInitialEvents=false&resourceVersionMatch=NotOlderThan", "resourceVersionMatch=Exact", "allowWatchBookmarks=x", "timeoutSeconds=x", "limit=1", "continue=x", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"))
	case 2:
		q = append(q, "timeoutSeconds=1")
	}
	accept := one(g, "", "", "", "application/json", "application/json;stream=watch", tableV1, partial, "application/yaml", "application/vnd.kubernetes.protobuf;stream=watch", "application/vnd.kubernetes.protobuf")
	var header []wire.Field
	if accept != "" {
		header = []wire.Field{{Name: "Accept", Value: accept}}
	}
	if g.chance(15) {
		path = strings.Replace(path, "/api/v1/", "/api/v1/watch/", 1)
		path = strings.Replace(path, r.Root()+"/", r.Root()+"/watch/", 1)
	}
	g.add(wire.Step{Kind: "watch", Resource: r.Label(), Method: "GET", Path: path + joined(q), Header: header, Watch: true})
}
