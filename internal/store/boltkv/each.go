package boltkv

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// Each calls visit for each key with a prefix that has a value, in the order of the last writes. all
// is the number of such keys. The store is in a data directory that no process has open for writing.
// Each never writes.
//
// The file is read twice. The first pass verifies the file and finds replaced values, with a little
// memory for each. The second pass reads the values one by one.
// Errors: ErrInUse, *FormatError, *kv.CorruptError, those of the operating system, and those of visit.
func Each(dir, prefix string, visit func(key string, value []byte, all int) error) error {
	file, err := os.Open(filepath.Join(dir, FileName))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := lockToRead(file); err != nil {
		return fmt.Errorf("reading storage in %s: %w", dir, err)
	}
	replaced, all := bits{}, 0
	err = scanFile(file, func(r stored) string {
		if !bytes.HasPrefix(r.key, []byte(prefix)) {
			return ""
		}
		if !r.deleted {
			all++
		}
		if r.revision > r.swept && r.prev != kv.Absent { // otherwise the replaced value is gone
			replaced.set(r.prev)
			all--
		}
		return ""
	})
	if err != nil {
		return err
	}
	var failed error
	err = scanFile(file, func(r stored) string {
		if r.deleted || replaced.has(r.revision) || !bytes.HasPrefix(r.key, []byte(prefix)) {
			return ""
		}
		if failed = visit(string(r.key), r.value, all); failed != nil {
			return "the rest is not read"
		}
		return ""
	})
	if failed != nil {
		return failed
	}
	return err
}

// scanFile scans a file, page by page.
func scanFile(file *os.File, see func(stored) (reason string)) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f, err := boltfile.Read(file.Name(), file, info.Size())
	if err != nil {
		return err
	}
	_, err = scan(f, see)
	return err
}

// bits are a set of revisions, many of which follow each other.
type bits map[int64]uint64

func (b bits) set(n int64)      { b[n/64] |= 1 << (n % 64) }
func (b bits) has(n int64) bool { return b[n/64]&(1<<(n%64)) != 0 }
