package boltkv

import (
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// The file is mapped into memory. Where a page of it is looked at, the system makes
// resident what is around it too, so after a while all of the file would be, although
// a value that is read is copied. So the mapping is emptied each time about so many
// bytes were looked at. What was in it stays in the system's cache of the file.
const mappedBytes = 1 << 20

// mappedAround is what a transaction looks at besides records: the nodes above them,
// and what the system adds to those.
const mappedAround = 32 << 10

// mapping is how much of the file was looked at since the mapping was empty.
type mapping struct{ seen atomic.Int64 }

// saw notes that a transaction, which is open, has looked at so many bytes. That it
// is open keeps the mapping where it is.
func (m *mapping) saw(tx *bolt.Tx, bytes int64) {
	if seen := m.seen.Add(bytes); seen >= mappedBytes && m.seen.CompareAndSwap(seen, 0) {
		unload(tx.DB().Info().Data, uintptr(tx.Size()))
	}
}
