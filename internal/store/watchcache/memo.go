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

// A Moment is a time at which something is asked for: what was computed at Since or
// later serves, and what is computed now is of At. Its zero value is for what never
// changes.
type Moment struct{ Since, At int64 }

type memo struct {
	key   any
	next  *memo
	count int // of memos from this one on
	call  atomic.Pointer[call]
}

// A call is a computation: under way while done is not nil.
type call struct {
	done  chan struct{}
	at    int64
	value []byte
	err   error
}

// over reports whether c, which may be nil, has ended and does not serve.
func (c *call) over(m Moment) bool { return c == nil || c.done == nil && c.at < m.Since }

func (m *memos) get(key any, moment Moment, compute func() ([]byte, error)) ([]byte, error) {
	n := m.named(key)
	for {
		c := n.call.Load()
		if c.over(moment) {
			now := &call{done: make(chan struct{}), at: moment.At, err: errors.New("the computation panicked")}
			if n.call.CompareAndSwap(c, now) {
				n.run(now, compute)
				return now.value, now.err
			}
			continue
		}
		if c.done != nil {
			<-c.done
		}
		if c.at >= moment.Since {
			return c.value, c.err
		}
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

// claim makes the caller the one who computes what key names, unless somebody
// has done so or is at it. It must call settle.
func (m *memos) claim(key any, moment Moment) (settle func(value []byte, err error), ok bool) {
	n := m.named(key)
	was := n.call.Load()
	c := &call{done: make(chan struct{}), at: moment.At}
	if !was.over(moment) || !n.call.CompareAndSwap(was, c) {
		return nil, false
	}
	return func(value []byte, err error) {
		c.value, c.err = value, err
		n.settle(c)
	}, true
}

func (m *memos) forget() { m.first.Store(nil) }

func (n *memo) run(c *call, compute func() ([]byte, error)) {
	defer n.settle(c)
	c.value, c.err = compute()
}

// settle tells what became of a computation. Only a value is kept.
func (n *memo) settle(c *call) {
	if c.err == nil {
		n.call.Store(&call{at: c.at, value: c.value})
	} else {
		n.call.Store(nil)
	}
	close(c.done)
}
