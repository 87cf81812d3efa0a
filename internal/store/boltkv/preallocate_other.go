//go:build !linux

package boltkv

import "os"

func preallocate(file *os.File, _, to int64) error {
	return fillSpace(file, to)
}
