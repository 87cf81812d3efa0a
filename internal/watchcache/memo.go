package watchcache

import (
	"errors"
	"sync/atomic"
)

// maxMemos is how many results are kept beside one object or event. Its keys
// name versions and representations, of which few are in use at a time; old
// generations of a schema are what it forgets.
const maxMemos = 8

// memos is a lock-free list of results by key, the newest first. The zero value
// is empty.
type memos struct{ first atomic.Pointer[memo] }

type memo struct {
	key   any
	next  *memo
	count int // of memos from this one on
	call  atomic.Pointer[call]
}

// A call is a computation: under way while done is not nil.
type call struct {
	done  chan struct{}
	value []byte
	err   error
}

func (m *memos) get(key any, compute func() ([]byte, error)) ([]byte, error) {
	n := m.named(key)
	for {
		c := n.call.Load()
		if c == nil {
			c = &call{done: make(chan struct{}), err: errors.New("the computation panicked")}
			if n.call.CompareAndSwap(nil, c) {
				n.run(c, compute)
				return c.value, c.err
			}
			continue
		}
		if c.done != nil {
			<-c.done
		}
		return c.value, c.err
	}
}

// named returns the memo of a key, made if there is none.
func (m *memos) named(key any) *memo {
	for {
		first := m.first.Load()
		for n := first; n != nil; n = n.next {
			if n.key == key {
				return n
			}
		}
		n := &memo{key: key, count: 1}
		if first != nil && first.count < maxMemos {
			n.next, n.count = first, first.count+1
		}
		if m.first.CompareAndSwap(first, n) {
			return n
		}
	}
}

func (m *memos) forget() { m.first.Store(nil) }

func (n *memo) run(c *call, compute func() ([]byte, error)) {
	defer func() {
		if c.err == nil {
			n.call.Store(&call{value: c.value})
		} else {
			n.call.Store(nil)
		}
		close(c.done)
	}()
	c.value, c.err = compute()
}
