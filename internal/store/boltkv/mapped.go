package boltkv

import (
	"bytes"
	"fmt"
	"os"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// Mapped returns the newest value of each key with a prefix in the file of a store. Until the release, no
// process can open the file for writing. Mapped never writes, and verifies the whole file.
//
// Errors: ErrInUse, *FormatError, *kv.CorruptError, those of the operating system.
func Mapped(name, prefix string) (m *kv.Mapping, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	release := func() { _, _ = unlock(file), file.Close() }
	defer func() {
		if err != nil {
			release()
		}
	}()
	if err := lockToRead(file); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	defer boltfile.RecoverDamage(file.Name(), &err)()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, &kv.CorruptError{Where: file.Name(), Reason: "the file is empty"}
	}
	data, _, err := boltfile.Map(file, info.Size())
	if err != nil {
		return nil, err
	}
	f, err := boltfile.Mapped(file.Name(), data)
	if err != nil {
		return nil, err
	}
	var newest kv.Newest
	var last int64
	see := func(r stored) string {
		if bytes.HasPrefix(r.key, []byte(prefix)) {
			newest.Add(r.key, r.value, r.revision, r.deleted)
		}
		last = r.revision
		return ""
	}
	has, err := scan(f, see)
	if err != nil {
		return nil, err
	}
	if last = has.state.newest; has.mark != 0 {
		if err := readJournal(name, has.mark, last, see); err != nil {
			return nil, err
		}
	}
	return &kv.Mapping{Records: newest.Records(), Revision: last, Release: release}, nil
}
