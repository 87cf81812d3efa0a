package garbage

import (
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller"
)

// owners is the graph of owner references, as of the last event. It only has objects with owner
// references, and objects in foreground deletion.
//
// Only the event loop changes it.
type owners struct {
	mu       sync.Mutex
	nodes    map[string]*node   // objects with owner references, by key
	families map[string]*family // by UID of the owner
}

// A node is an object with owner references.
type node struct {
	key, uid string
	ties     []tie // one for each owner
}

// A tie connects a node to the family of an owner.
type tie struct {
	family *family
	blocks bool // the node blocks a foreground deletion of the owner
}

// waits reports whether an object is in foreground deletion.
func waits(h *controller.Header) bool { return h.Deleting && h.Has(metav1.FinalizerDeleteDependents) }

// blocks reports whether the dependent blocks a foreground deletion of the owner.
func blocks(o *metav1.OwnerReference) bool {
	return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
}

// A family is an owner, which may not exist, and its dependents.
type family struct {
	uid        string
	waiting    string // the key of the owner during a foreground deletion
	blocking   int    // number of blocking dependents
	dependents map[*node]struct{}
}

func newOwners() *owners {
	return &owners{nodes: map[string]*node{}, families: map[string]*family{}}
}

// knows reports whether an object has owner references. Only the event loop may call it.
func (o *owners) knows(key string) bool { return o.nodes[key] != nil }

// empty reports whether there are no owners, so deletions have no consequences. Only the event loop
// may call it.
func (o *owners) empty() bool { return len(o.families) == 0 }

// put updates an object in the graph, and returns the tasks that follow. It may be skipped for
// objects without owners that are not in deletion and that o does not know.
func (o *owners) put(h *controller.Header) (tasks []controller.Task) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if n := o.nodes[h.Key]; n != nil && n.uid != h.UID {
		tasks = o.remove(n.key, n.uid)
	}
	tasks = append(tasks, o.tie(h)...)
	f := o.families[h.UID]
	switch {
	case waits(h) && (f == nil || f.waiting == ""):
		f = o.family(h.UID)
		f.waiting = h.Key
		tasks = append(tasks, f.tasks()...)
		tasks = append(tasks, controller.Task{Do: await, Key: h.Key, UID: h.UID})
	case !waits(h) && f != nil:
		f.waiting = ""
		o.shrunk(f)
	}
	if h.Deleting && h.Has(metav1.FinalizerOrphanDependents) {
		tasks = append(tasks, controller.Task{Do: orphan, Key: h.Key, UID: h.UID})
	}
	return tasks
}

// tie updates the ties of an object to its owners.
func (o *owners) tie(h *controller.Header) (tasks []controller.Task) {
	n := o.nodes[h.Key]
	if n == nil {
		if len(h.Owners) == 0 {
			return nil
		}
		n = &node{key: h.Key, uid: strings.Clone(h.UID)} // a copy, as the UID is a part of the object's bytes
		o.nodes[h.Key] = n
	}
	old := n.ties
	n.ties = o.ties(h.Owners)
	for _, t := range old {
		if t.blocks {
			t.family.blocking--
		}
	}
	fresh := false
	for _, t := range n.ties {
		if t.blocks {
			t.family.blocking++
		}
		if _, ok := t.family.dependents[n]; !ok {
			fresh = true
			t.family.dependents[n] = struct{}{}
		}
	}
	if fresh {
		tasks = append(tasks, controller.Task{Do: check, Key: n.key, UID: n.uid})
	}
	for _, t := range old {
		if !slices.ContainsFunc(n.ties, func(now tie) bool { return now.family == t.family }) {
			delete(t.family.dependents, n)
		}
		tasks = append(tasks, o.shrunk(t.family)...)
	}
	if len(n.ties) == 0 {
		delete(o.nodes, n.key)
	}
	return tasks
}

func (o *owners) ties(references []metav1.OwnerReference) []tie {
	ties := make([]tie, 0, len(references))
	for i := range references {
		r := &references[i]
		f := o.family(string(r.UID))
		at := slices.IndexFunc(ties, func(t tie) bool { return t.family == f })
		if at < 0 {
			at = len(ties)
			ties = append(ties, tie{family: f})
		}
		ties[at].blocks = ties[at].blocks || blocks(r)
	}
	return ties
}

// shrunk returns the tasks after a family has lost a dependent, and removes an empty family.
func (o *owners) shrunk(f *family) []controller.Task {
	switch {
	case f.waiting != "" && f.blocking == 0:
		return []controller.Task{{Do: await, Key: f.waiting, UID: f.uid}}
	case f.waiting == "" && len(f.dependents) == 0:
		delete(o.families, f.uid)
	}
	return nil
}

// gone removes an object, and returns the tasks that follow.
func (o *owners) gone(key, uid string) []controller.Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.remove(key, uid)
}

func (o *owners) remove(key, uid string) (tasks []controller.Task) {
	if n := o.nodes[key]; n != nil {
		delete(o.nodes, key)
		for _, t := range n.ties {
			if t.blocks {
				t.family.blocking--
			}
			delete(t.family.dependents, n)
			tasks = append(tasks, o.shrunk(t.family)...)
		}
	}
	if f := o.families[uid]; f != nil {
		f.waiting = ""
		tasks = append(tasks, f.tasks()...)
		o.shrunk(f)
	}
	return tasks
}

// family returns the family of an owner, and creates it if needed.
func (o *owners) family(uid string) *family {
	f := o.families[uid]
	if f == nil {
		f = &family{uid: strings.Clone(uid), dependents: map[*node]struct{}{}}
		o.families[f.uid] = f
	}
	return f
}

// tasks returns a collect task for each dependent.
func (f *family) tasks() []controller.Task {
	tasks := make([]controller.Task, 0, len(f.dependents)+1)
	for n := range f.dependents {
		tasks = append(tasks, controller.Task{Do: collect, Key: n.key, UID: n.uid})
	}
	return tasks
}

// replace sets o to the content of other, which must not be used any more.
func (o *owners) replace(other *owners) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes, o.families = other.nodes, other.families
}

// all returns a collect task for every object.
func (o *owners) all() []controller.Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	tasks := make([]controller.Task, 0, len(o.nodes))
	for _, n := range o.nodes {
		tasks = append(tasks, controller.Task{Do: collect, Key: n.key, UID: n.uid})
	}
	return tasks
}

// waits reports whether an object is in foreground deletion, and whether dependents block it.
func (o *owners) waits(uid string) (waits, blocked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.families[uid]
	if f == nil {
		return false, false
	}
	return f.waiting != "", f.blocking > 0
}

// dependents returns the dependents of an owner.
func (o *owners) dependents(uid string) []*node {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.families[uid]
	if f == nil {
		return nil
	}
	return slices.Collect(maps.Keys(f.dependents))
}

// circle reports whether an object has dependents, and whether one of them is in foreground
// deletion, so that a cycle is possible.
func (o *owners) circle(uid string) (has, possible bool) {
	for _, n := range o.dependents(uid) {
		waits, _ := o.waits(n.uid)
		has, possible = true, possible || waits
	}
	return has, possible
}
