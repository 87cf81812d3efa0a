package boltkv

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/journal"
	"github.com/anykind/anykind/internal/store/kv"
)

// On a full disk, freeing space needs space first: a deletion is a record, and bbolt writes every
// changed page to a new place. So the file always has a reserve: pages at its end that the disk has
// already allocated. Only deletions and compactions may use them up.
const (
	reserve = 2 << 20
	// The file grows in steps of an eighth of its size, within these.
	minGrowth = 1 << 20
	maxGrowth = 32 << 20
	// pageOverhead is more than what one transaction writes besides records.
	pageOverhead = 128 << 10
)

// space is the knowledge of the file and its disk.
type space struct {
	file *os.File
	used atomic.Int64 // length of the part in use
	full atomic.Bool

	mu        sync.Mutex // of the following fields
	allocated int64      // the file is allocated up to here
	recent    recentSizes
}

// recentSizes are of the newest records. bbolt writes them again together with
// the next one, because they are in the same page.
type recentSizes struct {
	sizes [4]int
	next  int
}

func (r *recentSizes) add(size int) {
	r.sizes[r.next%len(r.sizes)] = size
	r.next++
}

// saw notes the sizes of filed records.
func (s *space) saw(moved []kv.Event, b *batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b != nil {
		moved = append(moved[:len(moved):len(moved)], b.events...)
	}
	for i := max(0, len(moved)-len(s.recent.sizes)); i < len(moved); i++ {
		s.recent.add(recordSize(&moved[i]))
	}
}

func (r *recentSizes) total() int64 {
	n := 0
	for _, size := range r.sizes {
		n += size
	}
	return int64(n)
}

// makeRoom ensures space for a transaction that writes size bytes of records to a file of which some part is used,
// without use of the reserve. A transaction that frees space may use the reserve.
// Errors: kv.ErrFull, *journal.SyncError.
func (s *Store) makeRoom(used, size int64, frees bool) error {
	s.space.mu.Lock()
	defer s.space.mu.Unlock()
	need := 2*size + size/16 + s.space.recent.total() + pageOverhead
	end := used + need + reserve
	if end <= s.space.allocated {
		return nil
	}
	growth := min(max(end/8, minGrowth), maxGrowth)
	err := s.extend(end + growth)
	if isFull(err) {
		err = s.extend(end)
	}
	if !isFull(err) || frees {
		return onlySync(err)
	}
	// There may be room inside the file.
	if free := int64(s.db.Stats().FreePageN) * int64(s.db.Info().PageSize); free >= 2*need+reserve {
		return nil
	}
	return kv.ErrFull
}

// extend allocates the file up to an offset. It needs space.mu.
func (s *Store) extend(to int64) error {
	if err := s.allocate(s.space.allocated, to); err != nil {
		return err
	}
	s.space.allocated = to
	return nil
}

// onlySync drops errors of the reservation of space: if the space is really missing, the write will
// fail.
func onlySync(err error) error {
	if sync := (*journal.SyncError)(nil); errors.As(err, &sync) {
		return err
	}
	return nil
}

// isFull reports whether an error means that the disk had no space. The outcome of a failed fsync is
// unknown, even with such an error.
func isFull(err error) bool {
	if sync := (*journal.SyncError)(nil); errors.As(err, &sync) {
		return false
	}
	return boltfile.IsFull(err)
}

// isFullWrite is isFull for the error of a bbolt commit. There a failed write is
// an error of os.File, and a failed fsync is a bare error number.
func isFullWrite(err error) bool {
	var write *fs.PathError
	return errors.As(err, &write) && isFull(err)
}

// allocateSpace allocates an empty range of a file.
func allocateSpace(file *os.File, from, to int64) error {
	before, err := file.Stat()
	if err != nil {
		return err
	}
	if err := preallocate(file, from, to); err != nil {
		return err
	}
	if before.Size() >= to {
		return nil
	}
	if err := file.Sync(); err != nil {
		return &journal.SyncError{Err: err}
	}
	return nil
}

// fillSpace extends the file on systems without a call for it.
func fillSpace(file *os.File, to int64) error {
	end, err := file.Seek(0, io.SeekEnd)
	zeros := make([]byte, 64<<10)
	for err == nil && end < to {
		var n int
		n, err = file.WriteAt(zeros[:min(to-end, int64(len(zeros)))], end)
		end += int64(n)
	}
	return err
}
