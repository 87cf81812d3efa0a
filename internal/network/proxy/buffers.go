package proxy

import "sync"

// buffers are what answers are copied through. Most are small, and gone at once.
type buffers struct{ pool sync.Pool }

type buffer [32 << 10]byte

var shared = &buffers{sync.Pool{New: func() any { return new(buffer) }}}

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	one, _ := b.pool.Get().(*buffer)
	return one[:]
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(one []byte) { b.pool.Put((*buffer)(one)) }
