package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The program gets the arguments as they are, and its exit code is that of the command. Without the program, the error
// differs from that of a finding.
func TestVerifyRunsTheProgram(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if code := run("anykind", []string{"verify", "--", "true"}, time.Now()); code != exitUnsure {
		t.Errorf("without the program: %d", code)
	}
	if code := run("anykind", []string{"verify", "--help"}, time.Now()); code != 0 {
		t.Errorf("help without the program: %d", code)
	}
	script := "#!/bin/sh\n[ \"$*\" = \"--plans 3 -- a b\" ] && exit 7\nexit 8\n"
	if err := os.WriteFile(filepath.Join(dir, verifyName), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if code := run("anykind", []string{"verify", "--plans", "3", "--", "a", "b"}, time.Now()); code != 7 {
		t.Errorf("with the program: %d", code)
	}
}
