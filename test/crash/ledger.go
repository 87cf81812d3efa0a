package crash

import (
	"errors"
	"fmt"
	"sync"
)

// A version is what an object is known to be: absent at its zero value.
type version struct {
	present  bool
	value    int64
	revision int64 // of the write, where the answer said so; that of a deletion does not
}

func (v version) String() string {
	if !v.present {
		return "absent"
	}
	return fmt.Sprintf("value %d at revision %d", v.value, v.revision)
}

// A ledger is what writers were told. Each object has one writer, so what it must
// be is what was acknowledged last, or, when the answer to a later write never
// came, what that write would have made of it.
type ledger struct {
	mu      sync.Mutex
	known   map[string]version
	open    map[string]version // writes without an answer; their revision is not known
	used    map[int64]string   // by which write each revision was used
	highest int64              // that was acknowledged
	floor   int64              // highest when the server was started last
	acks    int
}

func newLedger() *ledger {
	return &ledger{known: map[string]version{}, open: map[string]version{}, used: map[int64]string{}}
}

// get returns what an object is known to be.
func (l *ledger) get(name string) version {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[name]
}

// acknowledge records an answer.
func (l *ledger) acknowledge(name string, v version) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acks++
	if err := l.use(name, v); err != nil {
		return err
	}
	l.known[name] = v
	return nil
}

func (l *ledger) use(name string, v version) error {
	if !v.present {
		return nil
	}
	write := writeOf(name, v.value)
	if other, twice := l.used[v.revision]; twice && other != write {
		return fmt.Errorf("revision %d was given to %s and to %s", v.revision, other, write)
	}
	if v.revision <= l.floor {
		return fmt.Errorf("%s was written at revision %d, but before the restart the server was at %d at least", write, v.revision, l.floor)
	}
	if before := l.known[name]; before.present && v.revision <= before.revision {
		return fmt.Errorf("%s was written at revision %d, which is not after %s", write, v.revision, before)
	}
	l.used[v.revision] = write
	l.highest = max(l.highest, v.revision)
	return nil
}

// lose records that the answer to a write did not come.
func (l *ledger) lose(name string, v version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[name] = v
}

// settle compares what is stored with what is known. What was open is known from
// then on.
func (l *ledger) settle(stored map[string]version) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	names := map[string]bool{}
	for name := range l.known {
		names[name] = true
	}
	for name := range l.open {
		names[name] = true
	}
	for name := range stored {
		if !names[name] {
			errs = append(errs, fmt.Errorf("%s is stored, and nobody wrote it", name))
		}
	}
	for name := range names {
		if err := l.settleOne(name, stored[name]); err != nil {
			errs = append(errs, err)
		}
	}
	clear(l.open)
	l.floor = l.highest
	return errors.Join(errs...)
}

func (l *ledger) settleOne(name string, is version) error {
	known := l.known[name]
	if is == known {
		return nil
	}
	open, asked := l.open[name]
	if !asked {
		return fmt.Errorf("%s is %s, the last answer said %s", name, is, known)
	}
	if is.present != open.present || is.value != open.value {
		return fmt.Errorf("%s is %s, the last answer said %s, and a write without an answer asked for %s", name, is, known, open)
	}
	if is.present && is.revision <= known.revision {
		return fmt.Errorf("%s is %s, which is not after %s", name, is, known)
	}
	// The write was made before the restart, so the floor does not count for it.
	if other, twice := l.used[is.revision]; is.present && twice {
		return fmt.Errorf("%s has revision %d, which was given to %s", name, is.revision, other)
	}
	if is.present {
		l.used[is.revision] = writeOf(name, is.value)
		l.highest = max(l.highest, is.revision)
	}
	l.known[name] = is
	return nil
}

// missing says which write is not among the events that a watcher saw.
func (l *ledger) missing(events map[int64]string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for revision, write := range l.used {
		if events[revision] != write {
			return fmt.Errorf("revision %d is %s, and the watch has seen %q there", revision, write, events[revision])
		}
	}
	return nil
}

// writeOf names a write: values are used once.
func writeOf(name string, value int64) string { return fmt.Sprintf("%s value %d", name, value) }

func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}
