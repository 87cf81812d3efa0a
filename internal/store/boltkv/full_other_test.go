//go:build !linux

package boltkv_test

// fullChild has no file system to fill.
func fullChild(string) {}
