//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package boltkv

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the same lock as bbolt. It does not wait.
func lockFile(file *os.File) error { return lock(file, syscall.LOCK_EX) }

// lockToRead takes a shared lock for readers.
func lockToRead(file *os.File) error { return lock(file, syscall.LOCK_SH) }

// unlock releases the lock. Close does not, as long as the file is mapped.
func unlock(file *os.File) error { return syscall.Flock(int(file.Fd()), syscall.LOCK_UN) }

func lock(file *os.File, how int) error {
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}

// initialMap is the address space for the growth of the file, so that bbolt need not wait for readers
// to map the file anew. It costs nothing else: 4 GiB on 64-bit systems, 64 MiB otherwise.
const initialMap = 64 << 20 << (6 * (^uint(0) >> 63))

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
