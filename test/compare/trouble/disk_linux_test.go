package trouble

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// disk mounts a file system of its own and returns its path, and a function that makes it read-only or
// writable.
func disk(t *testing.T) (dir string, writable func(bool) error) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func(yes bool) error {
		flags := uintptr(syscall.MS_REMOUNT | syscall.MS_RDONLY)
		if yes {
			flags = syscall.MS_REMOUNT
		}
		return syscall.Mount("tmpfs", dir, "tmpfs", flags, "size=64m")
	}
}

// refusal starts anykind in a folder and returns the message with which it fails.
func refusal(t *testing.T, dir string) string {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), anykind, "serve", "--data-dir", dir, "--secure-port", "0").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("ended with %v", err)
	}
	return string(out)
}

// A read-only folder gives an error of one line, with its name.
func TestReadOnlyDataDir(t *testing.T) {
	dir, writable := disk(t)
	used := filepath.Join(dir, "used")
	s := runOurs(t, used)
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := writable(false); err != nil {
		t.Skipf("cannot make it one that is only read: %v", err)
	}
	for name, path := range map[string]string{"new": filepath.Join(dir, "new"), "used": used} {
		t.Run(name, func(t *testing.T) {
			said := refusal(t, path)
			lines := strings.Count(strings.TrimSpace(said), "\n") + 1
			if lines != 1 || !strings.Contains(said, path) || !strings.Contains(said, "read-only file system") || strings.Contains(said, "goroutine") {
				t.Errorf("said in %d lines:\n%s", lines, said)
			}
		})
	}
}

// The error names a file that cannot be written. A folder in its place fails the write also for root.
func TestUnreadableFiles(t *testing.T) {
	for _, name := range []string{"a folder where the store is", "a folder where the kubeconfig is"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := runOurs(t, dir)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				isStore := strings.HasSuffix(e.Name(), ".db") || strings.Contains(e.Name(), "bolt")
				if isStore == strings.Contains(name, "store") && (isStore || e.Name() == "admin.kubeconfig") {
					path := filepath.Join(dir, e.Name())
					if err := os.RemoveAll(path); err != nil {
						t.Fatal(err)
					}
					if err := os.MkdirAll(filepath.Join(path, "x"), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			said := refusal(t, dir)
			if strings.Count(strings.TrimSpace(said), "\n") > 0 || !strings.Contains(said, dir) || strings.Contains(said, "goroutine") {
				t.Errorf("said:\n%s", said)
			}
		})
	}
}

func runOurs(t *testing.T, dir string) *process.Server {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens.csv")
	if err := os.WriteFile(tokens, []byte(servers.Token+",admin,admin,system:masters\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := process.Start(context.WithoutCancel(t.Context()), anykind, dir, "", "--token-auth-file", tokens)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// The disk becomes read-only while the server writes: either the open file of bbolt stays writable, or
// writes fail with an error of Kubernetes. Reads continue, and acknowledged writes survive a restart.
func TestDiskBecomesReadOnly(t *testing.T) {
	dir, writable := disk(t)
	s := runOurs(t, filepath.Join(dir, "data"))
	c, err := wire.NewClient(s.URL, &tls.Config{InsecureSkipVerify: true}, servers.Token)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	write := func(name string) *wire.Answer {
		return c.Do(t.Context(), wire.Step{Method: "POST", Path: collection, Header: asJSON, Body: []byte(`{"metadata":{"name":"` + name + `"}}`)})
	}
	if a := write("before"); a.Code != http.StatusCreated {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	// Open files keep a file system from becoming read-only.
	if err := writable(false); err == nil {
		a := write("during")
		if a.Code != http.StatusCreated && (a.Code < 500 || !strings.Contains(string(a.Body), `"kind":"Status"`)) {
			t.Errorf("a write is answered with %d %s %s", a.Code, a.Failed, a.Body)
		}
	} else if !errors.Is(err, syscall.EBUSY) {
		t.Skipf("cannot make it one that is only read: %v", err)
	}
	if a := c.Do(t.Context(), wire.Step{Method: "GET", Path: collection + "/before"}); a.Code != http.StatusOK {
		t.Errorf("a read is answered with %d %s", a.Code, a.Body)
	}
	if err := writable(true); err != nil {
		t.Fatal(err)
	}
	if a := write("after"); a.Code != http.StatusCreated {
		t.Errorf("afterwards, a write is answered with %d %s", a.Code, a.Body)
	}
}
