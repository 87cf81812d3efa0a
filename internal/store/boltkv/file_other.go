//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package boltkv

import "os"

// lockFile leaves locking to bbolt.
func lockFile(*os.File) error { return nil }

// lockToRead does nothing: records have checksums.
func lockToRead(*os.File) error { return nil }

// unlock does nothing.
func unlock(*os.File) error { return nil }

// initialMap is the initial size of the mapping; on systems other than Unix the file would grow to it.
const initialMap = 0

// syncDir does nothing: on these systems names are durable, or cannot be made durable.
func syncDir(string) error { return nil }
