package garbage

import (
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller"
)

// owners is who names whom as its owner, as of the revision that was followed
// to. Of all objects it has only those that name one, and those that wait for
// their dependents to go.
//
// Only who follows the store changes it.
type owners struct {
	mu       sync.Mutex
	nodes    map[string]*node   // objects that name owners, by key
	families map[string]*family // by the uid of the owner
}

// A node is an object that names owners.
type node struct {
	key, uid string
	ties     []tie // one for each family
}

// A tie is what makes a node part of a family.
type tie struct {
	family *family
	blocks bool // the owner, when it waits, waits for the node
}

// waits reports whether an object goes only after its dependents.
func waits(h *controller.Header) bool { return h.Deleting && h.Has(metav1.FinalizerDeleteDependents) }

// blocks reports whether an owner that waits for its dependents waits for the
// one that names it like that.
func blocks(o *metav1.OwnerReference) bool {
	return o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion
}

// A family is an owner, which may not exist, and those that name it.
type family struct {
	uid        string
	waiting    string // the key of the owner while it waits for its dependents to go
	blocking   int    // how many dependents it waits for, or would
	dependents map[*node]struct{}
}

func newOwners() *owners {
	return &owners{nodes: map[string]*node{}, families: map[string]*family{}}
}

// knows reports whether an object is one that names owners. It is for who
// changes o.
func (o *owners) knows(key string) bool { return o.nodes[key] != nil }

// empty reports whether no object that goes can be of interest. It is for who
// changes o.
func (o *owners) empty() bool { return len(o.families) == 0 }

// put makes an object known as it is now, and returns what there is to do about
// that. An object without owners that is not being deleted need only be put when
// o knows it.
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

// tie brings the owners that an object names up to date.
func (o *owners) tie(h *controller.Header) (tasks []controller.Task) {
	n := o.nodes[h.Key]
	if n == nil {
		if len(h.Owners) == 0 {
			return nil
		}
		n = &node{key: h.Key, uid: strings.Clone(h.UID)} // which is a part of the object
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

// shrunk returns what there is to do when a family has become smaller, and
// forgets one that is none any more.
func (o *owners) shrunk(f *family) []controller.Task {
	switch {
	case f.waiting != "" && f.blocking == 0:
		return []controller.Task{{Do: await, Key: f.waiting, UID: f.uid}}
	case f.waiting == "" && len(f.dependents) == 0:
		delete(o.families, f.uid)
	}
	return nil
}

// gone forgets an object, and returns what there is to do about that.
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

// family returns the family of an owner, made if there is none.
func (o *owners) family(uid string) *family {
	f := o.families[uid]
	if f == nil {
		f = &family{uid: strings.Clone(uid), dependents: map[*node]struct{}{}}
		o.families[f.uid] = f
	}
	return f
}

// tasks are to see of each dependent whether it has lost its owners.
func (f *family) tasks() []controller.Task {
	tasks := make([]controller.Task, 0, len(f.dependents)+1)
	for n := range f.dependents {
		tasks = append(tasks, controller.Task{Do: collect, Key: n.key, UID: n.uid})
	}
	return tasks
}

// replace makes o what other is, which nobody else uses.
func (o *owners) replace(other *owners) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.nodes, o.families = other.nodes, other.families
}

// all is to see of every object whether it has lost its owners.
func (o *owners) all() []controller.Task {
	o.mu.Lock()
	defer o.mu.Unlock()
	tasks := make([]controller.Task, 0, len(o.nodes))
	for _, n := range o.nodes {
		tasks = append(tasks, controller.Task{Do: collect, Key: n.key, UID: n.uid})
	}
	return tasks
}

// waits reports whether an object waits for its dependents to go, and whether
// there are any that it waits for.
func (o *owners) waits(uid string) (waits, blocked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.families[uid]
	if f == nil {
		return false, false
	}
	return f.waiting != "", f.blocking > 0
}

// dependents returns those that name an owner.
func (o *owners) dependents(uid string) []*node {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.families[uid]
	if f == nil {
		return nil
	}
	return slices.Collect(maps.Keys(f.dependents))
}

// circle reports whether an object has dependents, and whether one of them waits
// for its own, which the object may be one of.
func (o *owners) circle(uid string) (has, possible bool) {
	for _, n := range o.dependents(uid) {
		waits, _ := o.waits(n.uid)
		has, possible = true, possible || waits
	}
	return has, possible
}
