//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package boltkv

import "os"

// lockFile leaves locking to bbolt.
func lockFile(*os.File) error { return nil }

// lockToRead does nothing: records have checksums.
func lockToRead(*os.File) error { return nil }

// mapFile returns the contents of a file, and a function that releases them.
func mapFile(file *os.File, size int64) ([]byte, func(), error) {
	data := make([]byte, size)
	_, err := file.ReadAt(data, 0)
	return data, func() {}, err
}

// initialMap is the initial size of the mapping; on systems other than Unix the file would grow to it.
const initialMap = 0

// syncDir does nothing: on these systems names are durable, or cannot be made durable.
func syncDir(string) error { return nil }
