package boltkv

import "syscall"

// unload makes a part of a mapped file nonresident. The next access reads it again. An error changes
// nothing.
func unload(address, size uintptr) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, address, size, syscall.MADV_DONTNEED)
}
