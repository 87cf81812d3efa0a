package server

import "syscall"

// withTest makes a server end with its test process, however that ends.
func withTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// rename gives the calling thread, and the processes that it starts, another host name. It needs the rights of an
// administrator.
func rename(host string) error {
	if err := syscall.Unshare(syscall.CLONE_NEWUTS); err != nil {
		return err
	}
	return syscall.Sethostname([]byte(host))
}
