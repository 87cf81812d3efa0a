// Package scarce asks for what there is only so much of, and checks that nothing is given
// twice: addresses and ports of Services, the one node of a pod, the disruptions that a
// budget allows.
//
// Clients ask all at once, of one server or of several. Others make trouble meanwhile. Then:
//
//   - no two Services have an address or a node port, what is recorded as taken is what
//     they have, and what was given stays;
//   - a pod is on the node that a binder was told of, and on no other;
//   - no more pods are evicted than budgets have allowed, and no disruption is lost;
//   - a pod whose deletion was acknowledged is being deleted or gone, and stays so;
//   - what was acknowledged is there, and what is there was asked for.
package scarce

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// A Ledger is what clients have asked for, and what they were told.
type Ledger struct {
	mu    sync.Mutex
	lives map[string]*life
	names []string // of those that may be there
	// granted is how many disruptions the budget was ever given. evictions is how many
	// requests may have used one: those that were granted, or had no answer.
	granted, evictions int64
	// broken is what was wrong already when clients were told of it.
	broken []error
}

// NewLedger returns a ledger in which nothing was asked for.
func NewLedger() *Ledger { return &Ledger{lives: map[string]*life{}} }

type kind int

const (
	ofService kind = iota
	ofPod
	ofGuarded // a pod that has a budget
)

// A progress is how far a request is known to have come.
type progress int

const (
	never progress = iota
	asked          // there was no answer, or there is none yet
	done
)

// A life is what is known of one object. Names are used once.
type life struct {
	kind kind
	have bool   // it was created; without, that was asked for
	held string // addresses and ports of a Service, as they were given

	node  string          // on which a pod is known to be
	tried map[string]bool // nodes on which it may be, if it is on none that is known
	ready bool            // its status says so

	// remove is how far its deletion, or its eviction, has come. force is that of a pod
	// without any grace.
	remove, force progress
	gone          bool
}

func (l *life) wants(force bool, p progress) {
	if force {
		l.force = max(l.force, p)
	} else {
		l.remove = max(l.remove, p)
	}
}

// String says how much was asked for.
func (l *Ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	bound, told := 0, 0
	for _, life := range l.lives {
		if life.kind == ofPod && life.node != "" {
			bound++
		}
		if life.kind == ofGuarded && life.remove == done {
			told++
		}
	}
	return fmt.Sprintf("%d objects were asked for, %d pods were bound, %d evicted with %d disruptions", len(l.lives), bound, told, l.granted)
}

func (l *Ledger) ask(name string, as *life) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lives[name] = as
	l.names = append(l.names, name)
}

// asks changes what is known of an object.
func (l *Ledger) asks(name string, change func(*life)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.lives[name])
}

// refuse notes that an object was not created.
func (l *Ledger) refuse(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lives, name)
}

// have notes that an object was created.
func (l *Ledger) have(name, held string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lives[name].have, l.lives[name].held = true, held
}

// bound notes that a binder was told that it has won.
func (l *Ledger) bound(name, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod := l.lives[name]
	if pod.node != "" && pod.node != node {
		l.broken = append(l.broken, fmt.Errorf("%s was bound to %s and to %s", name, pod.node, node))
	}
	pod.node = node
}

// evicts notes that an eviction is asked for.
func (l *Ledger) evicts(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lives[name].remove = max(l.lives[name].remove, asked)
	l.evictions++
}

// notEvicted notes that the budget did not allow it.
func (l *Ledger) notEvicted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evictions--
}

// some is the name of one of the objects that are wanted, "" if there is none.
func (l *Ledger) some(random *rand.Rand, wanted func(*life) bool) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for from, i := random.IntN(len(l.names)+1), 0; i < len(l.names); i++ {
		name := l.names[(from+i)%len(l.names)]
		if life := l.lives[name]; life != nil && wanted(life) {
			return name
		}
	}
	return ""
}

// Settle compares what is stored with what is known. final says that what had no answer
// can no longer happen: its server is dead.
func (l *Ledger) Settle(s Stored, final bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := slices.Concat(l.broken, s.shared(), l.budget(s))
	for name := range s.objects() {
		if l.lives[name] == nil {
			errs = append(errs, fmt.Errorf("%s is stored, and nobody asked for it", name))
		}
	}
	for name, life := range l.lives {
		if err := life.settle(s, name, final); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	l.names = slices.DeleteFunc(l.names, func(name string) bool { return l.lives[name] == nil || l.lives[name].gone })
	return errors.Join(errs...)
}

// budget checks the disruptions.
func (l *Ledger) budget(s Stored) (errs []error) {
	used := l.granted - s.Allowed
	var evicted, told int64
	for name, life := range l.lives {
		if life.kind == ofGuarded && s.Pods[name].Deleting {
			evicted++
		}
		if life.kind == ofGuarded && life.remove == done {
			told++
		}
	}
	if evicted > used || told > used || s.Allowed < 0 {
		errs = append(errs, fmt.Errorf("%d pods are evicted, %d clients were told so, and of %d disruptions %d are left", evicted, told, l.granted, s.Allowed))
	}
	if used > l.evictions {
		errs = append(errs, fmt.Errorf("%d disruptions of %d are used, and there were %d evictions", used, l.granted, l.evictions))
	}
	return errs
}

func (l *life) settle(s Stored, name string, final bool) error {
	there := s.objects()[name]
	removed := l.remove == done && l.kind == ofService || l.force == done
	switch {
	case there && (l.gone || removed):
		return errors.New("it was deleted, and is there")
	case !there && l.have && !l.gone && !l.mayGo():
		return errors.New("it was created, and is not there")
	case !there:
		l.gone = l.gone || l.have || final
		return nil
	}
	l.have = true
	if final && l.force == asked {
		l.force = never
	}
	if l.kind == ofService {
		return l.settleService(s.Services[name], final)
	}
	return l.settlePod(s.Pods[name], final)
}

// mayGo reports whether the object may be gone. What is bound has grace, so that it is
// there until somebody is in a hurry; what is guarded is always bound.
func (l *life) mayGo() bool {
	if l.kind == ofGuarded {
		return false
	}
	return l.remove != never || l.force != never
}

func (l *life) settleService(held string, final bool) error {
	if l.held != "" && l.held != held {
		return fmt.Errorf("it has %s, and was given %s", held, l.held)
	}
	l.held = held
	if final {
		l.remove = never
	}
	return nil
}

func (l *life) settlePod(p Pod, final bool) error {
	switch {
	case l.node != "" && p.Node != l.node:
		return fmt.Errorf("it is on node %q, and was bound to %s", p.Node, l.node)
	case l.node == "" && p.Node != "" && !l.tried[p.Node]:
		return fmt.Errorf("it is on node %s, to which nobody bound it", p.Node)
	case l.remove == done && !p.Deleting:
		return errors.New("its deletion was acknowledged, and it is not being deleted")
	case p.Deleting && l.remove == never && l.force == never:
		return errors.New("it is being deleted, and nobody asked for that")
	}
	l.node = p.Node
	if p.Deleting {
		l.remove = done
	} else if final {
		l.remove = never
	}
	if final {
		clear(l.tried)
	}
	return nil
}
