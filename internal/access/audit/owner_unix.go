//go:build unix

package audit

import (
	"os"
	"syscall"
)

// own gives a file the owner in info.
func own(file *os.File, info os.FileInfo) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		_ = file.Chown(int(s.Uid), int(s.Gid))
	}
}
