//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package boltfile

import (
	"fmt"
	"os"
	"syscall"
)

// Map returns the contents of a file, and a function that releases them.
func Map(file *os.File, size int64) ([]byte, func(), error) {
	data, err := syscall.Mmap(int(file.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping %s: %w", file.Name(), err)
	}
	return data, func() { _ = syscall.Munmap(data) }, nil
}
