//go:build unix

package verify

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that ends takes its children with it, and leaves no file.
func TestProcessEndsItsChildren(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	var out bytes.Buffer
	p := &process{command: []string{"sh", "-c", "sleep 600 >/dev/null 2>&1 & echo $!; exit 3"}, output: &out}
	if err := p.run(t.Context()); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); syscall.Kill(child, 0) == nil && !isZombie(child); {
		if time.Now().After(end) {
			t.Fatalf("the child %d is alive", child)
		}
		<-time.After(10 * time.Millisecond)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// isZombie reports whether a process is dead, and its parent does not know it yet.
func isZombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// started is closed by the first output.
type started chan struct{}

func (s started) Write(b []byte) (int, error) {
	close(s)
	return len(b), nil
}

// A suspended process ends when it is killed.
func TestSuspendedProcessEnds(t *testing.T) {
	first := make(started)
	p := &process{command: []string{"sh", "-c", "echo started; exec sleep 600"}, output: first}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- p.run(ctx) }()
	<-first
	p.suspend(true)
	cancel()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Error(err)
	}
}
