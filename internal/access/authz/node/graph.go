package node

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of objects, as far as nodes are concerned.
type kind uint8

const (
	pods kind = iota
	persistentVolumes
	volumeAttachments
	resourceSlices
	podCertificateRequests
	followed // so many are read

	secrets = iota - 1
	configMaps
	persistentVolumeClaims
	resourceClaims
	serviceAccounts
)

// resources are the kinds that are read.
func resources() []schema.GroupResource {
	return []schema.GroupResource{
		pods:                   {Resource: "pods"},
		persistentVolumes:      {Resource: "persistentvolumes"},
		volumeAttachments:      {Group: "storage.k8s.io", Resource: "volumeattachments"},
		resourceSlices:         {Group: "resource.k8s.io", Resource: "resourceslices"},
		podCertificateRequests: {Group: "certificates.k8s.io", Resource: "podcertificaterequests"},
	}
}

// A vertex is an object that is stored, or that another one names.
type vertex struct {
	kind            kind
	namespace, name string
}

// An edge says that who may read an object may read another one: the node that runs a pod, or the
// one that may read an object.
type edge struct {
	from vertex
	node string // "" if it is to another object
	to   vertex
}

// A graph knows which objects lead to which nodes. Edges are counted: several objects may give
// the same.
type graph struct {
	given [followed]map[vertex][]edge // by the object that gives them
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

// set makes the edges that an object gives those in a list.
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

// clear forgets all edges that objects of a kind give.
func (g *graph) clear(k kind) {
	for by := range g.given[k] {
		g.set(by, nil)
	}
}

// leads reports whether an object leads to a node. No way comes back to where it was: from a
// secret it goes to volumes, and from there to claims.
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
