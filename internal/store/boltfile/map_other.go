//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package boltfile

import "os"

// Map returns the contents of a file, and a function that releases them.
func Map(file *os.File, size int64) ([]byte, func(), error) {
	data := make([]byte, size)
	_, err := file.ReadAt(data, 0)
	return data, func() {}, err
}
