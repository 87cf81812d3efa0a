package verdict

import (
	"os"
	"syscall"
)

// maxResident is how many bytes a process that has ended had in memory at most.
func maxResident(p *os.ProcessState) int64 { return p.SysUsage().(*syscall.Rusage).Maxrss << 10 }
