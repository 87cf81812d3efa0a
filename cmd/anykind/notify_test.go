package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A supervisor learns when the server serves, and when it begins to stop.
func TestSupervisorIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "socket")
	supervisor, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Skip("no sockets of this kind here:", err)
	}
	defer supervisor.Close()
	t.Setenv("NOTIFY_SOCKET", socket)

	s := serving(t, "--in-memory", "--kubeconfig", filepath.Join(dir, "kubeconfig"))
	told(t, supervisor, notifyReady)
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	told(t, supervisor, notifyStopping)
	if err := s.Wait(); err != nil {
		t.Fatal(err, s.stderr)
	}
}

func told(t *testing.T, supervisor *net.UnixConn, want string) {
	t.Helper()
	message := make([]byte, 100)
	n, err := supervisor.Read(message)
	if got := string(message[:n]); err != nil || got != want {
		t.Errorf("told %q, %v; want %q", got, err, want)
	}
}

// A service manager that sets NOTIFY_SOCKET waits for READY=1. A server that cannot send it exits.
func TestSupervisorIsGone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	cmd, stderr := command(t, "serve", "--secure-port=0", "--in-memory", "--kubeconfig", filepath.Join(t.TempDir(), "kubeconfig"))
	if err := cmd.Run(); err == nil || !strings.Contains(stderr.String(), "sending READY=1 to the service manager at NOTIFY_SOCKET") {
		t.Errorf("%v: %s", err, stderr)
	}
}
