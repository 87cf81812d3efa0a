package verdict

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// measureEvery is how often the memory of a process is looked at.
const measureEvery = 10 * time.Millisecond

// measure returns what ends measuring a process, and returns how many bytes it had in memory at most, as
// was last seen. What a process that has ended says of itself is no measure: until it became the program,
// it was this test.
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

// peak is what Linux says of a process: 0 if it has ended.
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
