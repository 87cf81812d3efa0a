package proxy

import "sync"

// buffers is a pool of copy buffers. Most answers are small and need one briefly.
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
