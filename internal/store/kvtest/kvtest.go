// Package kvtest tests any backend against the storage contract of package kv.
//
// It knows the contract and no backend. Each permitted difference of a backend has a name here, and is
// requested by that name.
package kvtest

import (
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// An Exception is a permitted difference from a local backend.
type Exception string

const (
	// LateProgress: batches without events come within an interval, not immediately.
	LateProgress Exception = "LateProgress"
	// UncertainWrites: a Commit whose context ends may return ErrUncertain.
	UncertainWrites Exception = "UncertainWrites"
	// UsedStore: the store is not at revision 1 at the start of the tests, because it has earlier
	// writes.
	UsedStore Exception = "UsedStore"
	// OneRevision: the changes of one write share a revision.
	OneRevision Exception = "OneRevision"
	// NoNotes: events have no notes.
	NoNotes Exception = "NoNotes"
)

// An Option tells the tests a property of a backend.
type Option func(*options)

type options struct {
	except     map[Exception]bool
	valueLimit int
}

// Except allows a backend to differ.
func Except(exceptions ...Exception) Option {
	return func(o *options) {
		for _, e := range exceptions {
			o.except[e] = true
		}
	}
}

// ValueLimit is the size of the largest value that the backend accepts. Without it, large values are
// not tested.
func ValueLimit(bytes int) Option {
	return func(o *options) { o.valueLimit = bytes }
}

// timeout ends a test that hangs. It is long because a write takes 40 ms on a busy disk.
const timeout = 5 * time.Minute

func collectOptions(given []Option) options {
	o := options{except: map[Exception]bool{}}
	for _, option := range given {
		option(&o)
	}
	return o
}

// Run checks a backend. open returns a new empty store for each call; the tests close it.
func Run(t *testing.T, open func(testing.TB) kv.Backend, given ...Option) {
	o := collectOptions(given)
	groups := []struct {
		name  string
		tests []test
	}{
		{"Read", readTests},
		{"Load", loadTests},
		{"Write", writeTests},
		{"Watch", watchTests},
		{"Compact", compactTests},
		{"Close", closeTests},
		{"Concurrent", concurrentTests},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, test := range g.tests {
				t.Run(test.name, func(t *testing.T) {
					test.run(newStore(t, open(t), o))
				})
			}
		})
	}
	t.Run("Model", func(t *testing.T) { runModel(t, o, open, nil) })
}

// A test is one sentence of the contract.
type test struct {
	name string
	run  func(*store)
}
