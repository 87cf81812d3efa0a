package watchcache

import (
	"errors"
	"sync/atomic"
)

// maxMemos limits the results kept beside one object or event. Keys name versions and representations,
// of which few are in use at a time. Beyond the limit all earlier results, mostly of earlier schemas,
// are dropped.
const maxMemos = 8

// memos is a lock-free list of results by key, the newest first. The zero value
// is empty.
type memos struct{ first atomic.Pointer[memo] }

// A Validity is the time of a request. Results computed at Since or later are valid, and new ones are
// computed at At. The zero value is for results that never expire.
type Validity struct{ Since, At int64 }

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

// over reports whether c, which may be nil, has ended and is not valid at m.
func (c *call) over(m Validity) bool { return c == nil || c.done == nil && c.at < m.Since }

// get returns a result, and whether this call computed it.
func (m *memos) get(key any, validity Validity, compute func() ([]byte, error)) (value []byte, fresh bool, err error) {
	n := m.named(key)
	for {
		c := n.call.Load()
		if c.over(validity) {
			now := &call{done: make(chan struct{}), at: validity.At, err: errors.New("the computation panicked")}
			if n.call.CompareAndSwap(c, now) {
				n.run(now, compute)
				return now.value, true, now.err
			}
			continue
		}
		if c.done != nil {
			<-c.done
		}
		if c.at >= validity.Since {
			return c.value, false, c.err
		}
	}
}

// named returns the memo of a key, created if missing.
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

// claim makes the caller compute the result of key, unless it is computed already or in progress. The
// caller must call publish.
func (m *memos) claim(key any, validity Validity) (publish func(value []byte, err error), ok bool) {
	n := m.named(key)
	was := n.call.Load()
	c := &call{done: make(chan struct{}), at: validity.At}
	if !was.over(validity) || !n.call.CompareAndSwap(was, c) {
		return nil, false
	}
	return func(value []byte, err error) {
		c.value, c.err = value, err
		n.publish(c)
	}, true
}

func (m *memos) forget() { m.first.Store(nil) }

func (n *memo) run(c *call, compute func() ([]byte, error)) {
	defer n.publish(c)
	c.value, c.err = compute()
}

// publish publishes the outcome of a computation. Only values are kept.
func (n *memo) publish(c *call) {
	if c.err == nil {
		n.call.Store(&call{at: c.at, value: c.value})
	} else {
		n.call.Store(nil)
	}
	close(c.done)
}
