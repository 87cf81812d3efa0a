//go:build !linux

package server

import "syscall"

// withTest has no equivalent of Linux's parent death signal here.
func withTest() *syscall.SysProcAttr { return nil }
