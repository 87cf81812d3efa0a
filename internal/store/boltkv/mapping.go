package boltkv

import (
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// The file is mapped into memory. A read of a page makes its surroundings resident, so after a while
// the whole file would be, although read values are copied. Therefore the mapping is emptied after
// each mappedBytes of reads. The data stays in the page cache of the system.
const mappedBytes = 1 << 20

// mappedAround estimates the reads of a transaction besides records: the nodes above them, and the
// readahead of the system.
const mappedAround = 32 << 10

// mapping counts the bytes read since the mapping was empty.
type mapping struct{ seen atomic.Int64 }

// saw counts the bytes that an open transaction has read. The open transaction keeps the mapping in
// its place.
func (m *mapping) saw(tx *bolt.Tx, bytes int64) {
	if seen := m.seen.Add(bytes); seen >= mappedBytes && m.seen.CompareAndSwap(seen, 0) {
		unload(tx.DB().Info().Data, uintptr(tx.Size()))
	}
}
