package server

import "syscall"

// withTest makes a server end with its test process, however that ends.
func withTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
