//go:build !linux

package boltkv

import "os"

// syncData returns when the written bytes of a file are on the disk.
func syncData(file *os.File) error { return file.Sync() }
