package boltkv

import (
	"errors"
	"os"
	"syscall"
)

// syncData returns when the written bytes of a file are on the disk.
func syncData(file *os.File) error {
	for {
		if err := syscall.Fdatasync(int(file.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
