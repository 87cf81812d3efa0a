//go:build !linux

package boltkv

// unload leaves it to the system what of a mapped file is resident.
func unload(uintptr, uintptr) {}
