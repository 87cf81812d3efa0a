//go:build !linux

package server

import "syscall"

// withTest has nothing that would end a server when its test does.
func withTest() *syscall.SysProcAttr { return nil }
