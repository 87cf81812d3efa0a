package verdict

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// measureEvery is the interval of memory measurements.
const measureEvery = 10 * time.Millisecond

// measure starts to measure a process, and returns a function that stops and returns the peak of its
// memory in bytes, as last observed. The rusage of an ended process is of no use: before its exec, it
// was this test.
func measure(pid int) func() int64 {
	done, most := make(chan struct{}), make(chan int64)
	go func() {
		ticker := time.NewTicker(measureEvery)
		defer ticker.Stop()
		var last int64
		for {
			if now := peak(pid); now > 0 {
				last = now
			}
			select {
			case <-ticker.C:
			case <-done:
				most <- last
				return
			}
		}
	}()
	return func() int64 {
		close(done)
		return <-most
	}
}

// peak returns the peak memory of a process from Linux: 0 if it has ended.
func peak(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(rest, &kilobytes); err != nil {
		return 0
	}
	return kilobytes << 10
}
