package generate

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

const (
	tableV1     = "application/json;as=Table;v=v1;g=meta.k8s.io"
	tableBeta   = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"
	partial     = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
	partialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
)

// read gets and lists a few objects in every way.
func read(g *G) {
	r := g.resource(func(r *Resource) bool { return editable(r) && r.Can("list") })
	o := g.object(r)
	names := g.several(r, o)
	for range 3 + g.IntN(4) {
		if g.chance(3) {
			g.getOne(r, one(g, names...))
		} else {
			g.list(r, nil)
		}
	}
}

// several creates up to four objects with different labels.
func (g *G) several(r *Resource, o map[string]any) []string {
	g.room(r)
	var names []string
	for i := range 1 + g.IntN(4) {
		o := clone(o).(map[string]any)
		m := at(o, "metadata")
		name := fmt.Sprintf("%s-%c", wire.Scope, 'd'-i)
		m["name"] = name
		labels := at(m, "labels")
		labels["n"] = text(i)
		if i%2 == 0 {
			labels["even"] = "yes"
		}
		if spec, ok := o["spec"].(map[string]any); ok && r.Kind == "Widget" {
			spec["color"] = one(g, "red", "blue", "green")
		}
		names = append(names, name)
		g.post(r, o)
	}
	return names
}

func (g *G) getOne(r *Resource, name string) {
	var q []string
	if g.chance(4) {
		q = append(q, "resourceVersion="+one(g, "0", "1", "x", "", "9999999999", "-1", wire.Refer(len(g.steps), "metadata.resourceVersion")))
	}
	if g.chance(12) {
		// kube-apiserver ignores the match of a get. anykind obeys Exact beside a resourceVersion, so Exact comes without one.
		match := "resourceVersionMatch=Exact"
		if len(q) > 0 {
			match = "resourceVersionMatch=NotOlderThan"
		}
		q = append(q, one(g, "pretty=true", "pretty=false", "pretty", match, "fieldSelector=metadata.name=x", "limit=1", "watch=true"))
	}
	g.add(wire.Step{Kind: "get", Resource: r.Label(), Method: one(g, "GET", "GET", "GET", "GET", "HEAD"), Path: r.Path(namespaceOf(r), name) + joined(q), Header: g.view(name == "")})
}

// view returns headers for the form of a response.
func (g *G) view(list bool) []wire.Field {
	as := partial
	if list {
		as = partialList
	}
	accept := one(g, "", "", "application/json", tableV1, tableV1, tableBeta, as, partialList, "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
		"application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json")
	if accept == "" {
		return nil
	}
	return []wire.Field{{Name: "Accept", Value: accept}}
}

func joined(q []string) string {
	if len(q) == 0 {
		return ""
	}
	return "?" + strings.Join(q, "&")
}

// list adds a list of the objects of the sequence, with additional query parameters.
func (g *G) list(r *Resource, q []string) int {
	path := r.Path(namespaceOf(r), "")
	selectors := []string{}
	if !r.Namespaced || g.chance(6) {
		path = r.Path("", "")
		selectors = append(selectors, "scope="+wire.Scope)
	} else if r.crowded() {
		selectors = append(selectors, "scope="+wire.Scope)
	}
	if g.chance(3) {
		selectors = append(selectors, one(g, "even", "!even", "n=1", "n!=1", "n in (0,1)", "n notin (1)", "n>0", "even==yes", "a=b", "", ",", "=x", "a in ()", "a b", "x/y/z=1", "n=1,n=2", "n = 1", "a=-", "n in (1"))
	}
	if len(selectors) > 0 {
		q = append(q, "labelSelector="+url.QueryEscape(strings.Join(selectors, ",")))
	}
	if g.chance(4) {
		q = append(q, "fieldSelector="+url.QueryEscape(g.fieldSelector(r)))
	}
	kind := "list"
	if g.chance(4) {
		q = append(q, "limit="+one(g, "1", "2", "500", "0", "-1", "x", "", "9999999999999999999"))
		kind = "list with limit"
		if n := len(g.steps); n > 0 && g.steps[n-1].Kind == kind && g.chance(2) {
			q = append(q, "continue="+wire.Refer(n, "metadata.continue"))
		}
	}
	if g.chance(4) {
		kind += " and resourceVersion"
		revision := one(g, "0", "1", "", "x", "99999999999", wire.Refer(len(g.steps), "metadata.resourceVersion"))
		q = append(q, "resourceVersion="+revision)
		if revision == "0" {
			kind += " 0"
		}
		if g.chance(2) {
			q = append(q, "resourceVersionMatch="+one(g, "Exact", "NotOlderThan", "Bogus", ""))
		}
	} else if g.chance(12) {
		q = append(q, one(g, "resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "continue=x", "continue=", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0", "timeoutSeconds=1", "timeoutSeconds=x", "timeoutSeconds=0", "watch=false", "watch=0", "sendInitialEvents=true", "allowWatchBookmarks=true", "pretty=true", "includeObject=None", "includeObject=Object", "includeObject=Metadata", "includeObject=bogus"))
	}
	if strings.Contains(strings.Join(q, "&"), "includeObject") {
		return g.add(wire.Step{Kind: kind, Resource: r.Label(), Method: "GET", Path: path + joined(q), Header: []wire.Field{{Name: "Accept", Value: tableV1}}})
	}
	return g.add(wire.Step{Kind: kind, Resource: r.Label(), Method: "GET", Path: path + joined(q), Header: g.view(true)})
}

func (g *G) fieldSelector(r *Resource) string {
	selectors := []string{"metadata.name=" + wire.Scope + "-d", "metadata.name!=" + wire.Scope + "-d", "metadata.namespace=" + wire.Scope, "metadata.namespace!=x", "metadata.name=x",
		"metadata.uid=x", "spec.x=1", "bogus", "=", "metadata.name", "metadata.name==" + wire.Scope + "-c", "metadata.name in (a)", "", "metadata.name=" + wire.Scope + "-d,metadata.namespace=" + wire.Scope}
	switch r.Kind {
	case "Widget":
		selectors = append(selectors, "spec.color=red", "spec.color!=red", "spec.replicas=2", "spec.deep.flag=false", "spec.color=red,spec.replicas=2", "spec.color=", "spec.ratio=1.5")
	case "Secret":
		selectors = append(selectors, "type=Opaque", "type!=Opaque")
	case "Event":
		selectors = append(selectors, "reason=Tested", "involvedObject.kind=ConfigMap", "type=Normal", "source=compare", "reportingComponent=x", "involvedObject.name=y", "regarding.name=x")
	case "Service":
		selectors = append(selectors, "spec.type=ClusterIP", "spec.clusterIP=None")
	case "Namespace":
		selectors = append(selectors, "status.phase=Active", "status.phase!=Active", "name=x")
	}
	return one(g, selectors...)
}
