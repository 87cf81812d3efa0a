package server

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// busyVariable makes the test binary a process that uses all CPU time it can get.
const busyVariable = "ANYKIND_BENCH_BUSY"

func TestMain(m *testing.M) {
	if os.Getenv(busyVariable) != "" {
		for {
			_ = time.Now()
		}
	}
	os.Exit(m.Run())
}

// A held process gets its CPU share and no more, and runs freely after its release.
func TestHold(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says what a process takes")
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), busyVariable+"=1")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer child.Wait()
	defer child.Process.Kill()
	h := hold(child.Process, 0.1)
	began, before := time.Now(), taken(t, child)
	// The process progresses, however busy the machine is.
	await(t, child, before+10*tick)
	if passed := time.Since(began); passed < 50*tick {
		t.Errorf("it took %v of the processor in %v, more than half instead of a tenth", 10*tick, passed)
	}
	if err := h.release(); err != nil {
		t.Fatal(err)
	}
	await(t, child, taken(t, child)+5*tick)
}

// await returns once a process has used that much CPU time.
func await(t *testing.T, p *exec.Cmd, much time.Duration) {
	t.Helper()
	look := time.NewTicker(tick)
	defer look.Stop()
	for taken(t, p) < much {
		<-look.C
	}
}

func taken(t *testing.T, p *exec.Cmd) time.Duration {
	t.Helper()
	used, err := processor(p.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return used
}
