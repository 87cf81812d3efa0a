package verdict

import (
	"os/exec"
	"testing"
	"time"
)

// measured runs a command, and returns its duration and the peak of its memory in bytes.
func measured(t *testing.T, cmd *exec.Cmd) (took time.Duration, memory int64, err error) {
	t.Helper()
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := measure(cmd.Process.Pid)
	err = cmd.Wait()
	return time.Since(began), peak(), err
}
