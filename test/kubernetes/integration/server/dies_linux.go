package server

import "syscall"

// withTest has a server end when its test does, however that is.
func withTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
