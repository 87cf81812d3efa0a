package node

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of the vertices.
type kind uint8

const (
	pods kind = iota
	persistentVolumes
	volumeAttachments
	resourceSlices
	podCertificateRequests
	followed // the number of kinds to follow

	secrets = iota - 1
	configMaps
	persistentVolumeClaims
	resourceClaims
	serviceAccounts
)

// resources returns the kinds to follow.
func resources() []schema.GroupResource {
	return []schema.GroupResource{
		pods:                   {Resource: "pods"},
		persistentVolumes:      {Resource: "persistentvolumes"},
		volumeAttachments:      {Group: "storage.k8s.io", Resource: "volumeattachments"},
		resourceSlices:         {Group: "resource.k8s.io", Resource: "resourceslices"},
		podCertificateRequests: {Group: "certificates.k8s.io", Resource: "podcertificaterequests"},
	}
}

// A vertex is a stored object, or one that a stored object names.
type vertex struct {
	kind            kind
	namespace, name string
}

// An edge leads from an object to the node that may read it, or to another object whose readers may
// read it.
type edge struct {
	from vertex
	node string // "" for an edge to an object
	to   vertex
}

// A graph finds the nodes that are related to an object. Edges are counted, because several objects
// may add the same edge.
type graph struct {
	given [followed]map[vertex][]edge // by the object that adds them
	nodes map[vertex]map[string]int
	via   map[vertex]map[vertex]int
}

func newGraph() graph {
	g := graph{nodes: map[vertex]map[string]int{}, via: map[vertex]map[vertex]int{}}
	for i := range g.given {
		g.given[i] = map[vertex][]edge{}
	}
	return g
}

// set replaces the edges of an object.
func (g *graph) set(by vertex, edges []edge) {
	given := g.given[by.kind]
	for _, e := range given[by] {
		g.count(&e, -1)
	}
	delete(given, by)
	if len(edges) == 0 {
		return
	}
	given[by] = edges
	for _, e := range edges {
		g.count(&e, 1)
	}
}

func (g *graph) count(e *edge, by int) {
	if e.node != "" {
		count(g.nodes, e.from, e.node, by)
	} else {
		count(g.via, e.from, e.to, by)
	}
}

func count[T comparable](all map[vertex]map[T]int, from vertex, to T, by int) {
	counts := all[from]
	if counts == nil {
		counts = map[T]int{}
		all[from] = counts
	}
	if counts[to] += by; counts[to] > 0 {
		return
	}
	if delete(counts, to); len(counts) == 0 {
		delete(all, from)
	}
}

// clear removes all edges of objects of a kind.
func (g *graph) clear(k kind) {
	for by := range g.given[k] {
		g.set(by, nil)
	}
}

// leads reports whether a path leads from an object to a node. Paths have no cycle: they lead from
// secrets to volumes, and from volumes to claims.
func (g *graph) leads(from vertex, node string) bool {
	if g.nodes[from][node] > 0 {
		return true
	}
	for to := range g.via[from] {
		if g.leads(to, node) {
			return true
		}
	}
	return false
}
