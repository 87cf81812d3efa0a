package boltkv

import (
	"errors"
	"os"
	"syscall"
)

func preallocate(file *os.File, from, to int64) error {
	for {
		err := syscall.Fallocate(int(file.Fd()), 0, from, to-from)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
			return fillSpace(file, to)
		default:
			return err
		}
	}
}
