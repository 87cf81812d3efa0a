package crash

import (
	"errors"
	"fmt"
	"sync"
)

// A version is the known state of an object. The zero value is absent.
type version struct {
	present  bool
	value    int64
	revision int64 // of the write, from its response; responses to deletions have none
}

func (v version) String() string {
	if !v.present {
		return "absent"
	}
	return fmt.Sprintf("value %d at revision %d", v.value, v.revision)
}

// A ledger records the responses to writers. Each object has one writer, so its state is the last
// acknowledged one, or the result of a later write without a response.
type ledger struct {
	mu      sync.Mutex
	known   map[string]version
	open    map[string]version // writes without a response; their revision is unknown
	used    map[int64]string   // the write of each revision
	highest int64              // highest acknowledged revision
	floor   int64              // highest at the last start of the server
	acks    int
}

func newLedger() *ledger {
	return &ledger{known: map[string]version{}, open: map[string]version{}, used: map[int64]string{}}
}

// get returns the known state of an object.
func (l *ledger) get(name string) version {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[name]
}

// acknowledge records a response.
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

// lose records a write without a response.
func (l *ledger) lose(name string, v version) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[name] = v
}

// verify compares the stored state with the known one. It then takes the outcome of open writes as
// known.
func (l *ledger) verify(stored map[string]version) error {
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
			errs = append(errs, fmt.Errorf("%s is stored without a write", name))
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
	// The write happened before the restart, so the floor does not apply.
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

// missing returns an error for a write that the watcher's events lack.
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

// writeOf returns the unique name of a write: each value is used once.
func writeOf(name string, value int64) string { return fmt.Sprintf("%s value %d", name, value) }

func (l *ledger) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks
}
