//go:build !linux

package server

import (
	"errors"
	"syscall"
)

// withTest has no equivalent of Linux's parent death signal here.
func withTest() *syscall.SysProcAttr { return nil }

// rename has no equivalent here.
func rename(string) error { return errors.ErrUnsupported }
