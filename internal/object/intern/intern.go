// Package intern is a weak table of shared values, by key. It creates each value once while the
// value is in use, and keeps no value alive.
package intern

import (
	"runtime"
	"sync"
	"weak"
)

// A Table has the values in use, by key. A key identifies a value completely: values with equal
// keys are interchangeable. The zero value is empty; a nil one stays empty. It is safe for
// concurrent use.
type Table[K comparable, V any] struct {
	mu     sync.Mutex
	values map[K]weak.Pointer[V]
}

// Get returns the value of a key, or nil.
func (t *Table[K, V]) Get(key K) *V {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values[key].Value()
}

// Put returns the value in use for a key if there is one, else v.
func (t *Table[K, V]) Put(key K, v *V) *V {
	if t == nil {
		return v
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.values[key].Value(); known != nil {
		return known
	}
	if t.values == nil {
		t.values = map[K]weak.Pointer[V]{}
	}
	t.values[key] = weak.Make(v)
	runtime.AddCleanup(v, t.forget, key)
	return v
}

// forget drops a collected value, unless another has replaced it.
func (t *Table[K, V]) forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.values[key].Value() == nil {
		delete(t.values, key)
	}
}

// Len returns the number of values in use.
func (t *Table[K, V]) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.values)
}
