package boltkv

import "syscall"

// unload makes a part of a mapped file not resident. It is read again when it is
// looked at. An error leaves it as it was.
func unload(address, size uintptr) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, address, size, syscall.MADV_DONTNEED)
}
