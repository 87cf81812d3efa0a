package boltfile

import (
	"errors"
	"fmt"
	"runtime/debug"
	"syscall"

	"github.com/anykind/anykind/internal/store/kv"
)

// RecoverDamage turns a panic into a *kv.CorruptError: bbolt panics on a damaged file, and reading a
// mapped file faults if the disk fails or the file became shorter. It is used as
//
//	defer boltfile.RecoverDamage(where, &err)()
func RecoverDamage(where string, err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if reason := recover(); reason != nil {
			*err = &kv.CorruptError{Where: where, Reason: fmt.Sprint(reason)}
		}
	}
}

// IsFull reports whether an error means that the disk, or the quota, has no space.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
