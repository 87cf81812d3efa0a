package main

import (
	"bufio"
	"strings"
	"testing"
)

// With --stop-with-stdin, the server ends with its standard input, as with SIGTERM.
func TestStopWithStdin(t *testing.T) {
	cmd, stderr := command(t, "serve", "--in-memory", "--secure-port=0", "--stop-with-stdin")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || !strings.Contains(line, "listens on") {
		t.Fatalf("%v: %s%s", err, line, stderr)
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || stderr.Len() > 0 {
		t.Errorf("%v: %s", err, stderr)
	}
}
