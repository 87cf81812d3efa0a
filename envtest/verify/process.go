package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A process is one life of World.Command.
type process struct {
	command    []string
	kubeconfig []byte
	output     io.Writer

	mu      sync.Mutex
	running *os.Process // nil before and after its life
}

// run starts the process, and waits for its end. When the context ends, the process is killed, and its children with it.
func (p *process) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "verify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, p.kubeconfig, 0o600); err != nil {
		return err
	}
	last := &tail{}
	cmd := exec.CommandContext(ctx, p.command[0], p.command[1:]...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), inCluster), "KUBECONFIG="+file)
	cmd.Stdout = io.MultiWriter(last, p.output)
	cmd.Stderr = cmd.Stdout
	cmd.WaitDelay = time.Second // for children that keep its output open
	ownGroup(cmd)
	cmd.Cancel = func() error { return signalGroup(cmd.Process, kill) }
	if err := cmd.Start(); err != nil {
		return err
	}
	p.set(cmd.Process)
	defer p.set(nil)
	err = cmd.Wait()
	_ = signalGroup(cmd.Process, kill) // children that outlive it
	if reason := last.panicked(); reason != "" {
		return panicked{reason}
	}
	if err == nil {
		err = errors.New("exit status 0")
	}
	return fmt.Errorf("%w\n%s", err, last)
}

func (p *process) set(running *os.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = running
}

// suspend stops the process, or lets it go on.
func (p *process) suspend(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running == nil {
		return
	}
	s := goOn
	if on {
		s = stop
	}
	_ = signalGroup(p.running, s)
}

// inCluster reports whether an environment variable belongs to the configuration of a client in a Pod.
func inCluster(variable string) bool {
	return strings.HasPrefix(variable, "KUBERNETES_SERVICE_HOST=") || strings.HasPrefix(variable, "KUBERNETES_SERVICE_PORT=")
}

var panics = regexp.MustCompile(`(?m)^((?:panic|fatal error): .*)$[^\0]*^goroutine \d+ \[`)

// A tail keeps the end of what is written to it.
type tail struct{ kept []byte }

// tailBytes is more than the trace of the goroutine that panics.
const tailBytes = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = bytes.Clone(t.kept[over:])
	}
	return len(b), nil
}

// String returns the last ten lines.
func (t *tail) String() string {
	lines := strings.Split(strings.TrimSpace(string(t.kept)), "\n")
	return strings.Join(lines[max(0, len(lines)-10):], "\n")
}

// panicked returns the line by which a program in Go reports that it panics, or "".
func (t *tail) panicked() string {
	if line := panics.FindStringSubmatch(string(t.kept)); line != nil {
		return line[1]
	}
	return ""
}
