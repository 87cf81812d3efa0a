// Package scarce requests scarce resources, and checks that none is allocated twice: addresses and
// ports of Services, the one node of a pod, the disruptions of a budget.
//
// Clients send requests concurrently, to one server or to several. A test injects faults meanwhile.
// Then:
//
//   - no two Services share an address or a node port, the allocation records match the Services, and
//     allocations are stable;
//   - a pod is on the node for which its binder got a success, and on no other;
//   - no more pods are evicted than budgets have allowed, and no disruption is lost;
//   - a pod whose deletion was acknowledged is terminating or gone, and stays so;
//   - acknowledged writes are stored, and every stored object was requested.
package scarce

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

// A Ledger records the requests of clients, and their outcomes.
type Ledger struct {
	mu    sync.Mutex
	lives map[string]*life
	names []string // of objects that may exist
	// granted is the total number of disruptions that the budget got. evictions is the number of
	// requests that may have used one: successful ones, and ones without a response.
	granted, evictions int64
	// broken has the violations in responses to clients.
	broken []error
}

// NewLedger returns an empty ledger.
func NewLedger() *Ledger { return &Ledger{lives: map[string]*life{}} }

type kind int

const (
	ofService kind = iota
	ofPod
	ofGuarded // a pod with a budget
)

// A progress is the known state of a request.
type progress int

const (
	never progress = iota
	asked          // there was no response, or there is none yet
	done
)

// A life is the known state of one object. Names are used once.
type life struct {
	kind kind
	have bool   // it was created; otherwise its creation was requested
	held string // addresses and ports of a Service, as allocated

	node  string          // the known node of a pod
	tried map[string]bool // possible nodes, if none is known
	ready bool            // from its status

	// remove is the state of its deletion or eviction, and force that of its deletion without grace.
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

// String returns the numbers of requests.
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

// asks changes the known state of an object.
func (l *Ledger) asks(name string, change func(*life)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l.lives[name])
}

// refuse records a failed create.
func (l *Ledger) refuse(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.lives, name)
}

// have records a successful create.
func (l *Ledger) have(name, held string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lives[name].have, l.lives[name].held = true, held
}

// bound records a successful binding.
func (l *Ledger) bound(name, node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod := l.lives[name]
	if pod.node != "" && pod.node != node {
		l.broken = append(l.broken, fmt.Errorf("%s was bound to %s and to %s", name, pod.node, node))
	}
	pod.node = node
}

// evicts records the request for an eviction.
func (l *Ledger) evicts(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lives[name].remove = max(l.lives[name].remove, asked)
	l.evictions++
}

// notEvicted records an eviction that the budget did not allow.
func (l *Ledger) notEvicted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.evictions--
}

// some returns the name of a random object that is wanted, "" if there is none.
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

// Verify compares the stored state with the known one. final means that a request without a response
// can no longer take effect: its server is dead.
func (l *Ledger) Verify(s Stored, final bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	errs := slices.Concat(l.broken, s.shared(), l.budget(s))
	for name := range s.objects() {
		if l.lives[name] == nil {
			errs = append(errs, fmt.Errorf("%s is stored without a create", name))
		}
	}
	for name, life := range l.lives {
		if err := life.verify(s, name, final); err != nil {
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

func (l *life) verify(s Stored, name string, final bool) error {
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

// mayGo reports whether the object may be gone. A bound pod has a grace period, so it stays until a
// deletion without grace; a guarded pod is always bound.
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
		return fmt.Errorf("it is on node %s without a binding", p.Node)
	case l.remove == done && !p.Deleting:
		return errors.New("its deletion was acknowledged, and it is not being deleted")
	case p.Deleting && l.remove == never && l.force == never:
		return errors.New("it is being deleted without a request")
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
