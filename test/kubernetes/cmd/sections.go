package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anykind/anykind/test/kubernetes/known"
)

// canary is a section that fails on purpose.
const canary = "record_command_canary"

// read reads the output of the suite to its end.
func (s *sections) read(from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line := lines.Text()
		if s.verbose {
			fmt.Fprintln(os.Stderr, line)
		}
		if err := s.line(line); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (s *sections) line(line string) error {
	// The output of a section may end without a line feed.
	if _, name, begins := strings.Cut(line, "Recording: "); begins {
		s.name, s.since = name, time.Now()
		s.said.Reset()
		return nil
	}
	if s.name == "" {
		s.between.add(line)
		s.whole = s.whole || strings.Contains(line, "TESTS PASSED") || strings.HasPrefix(line, "FAILED TESTS")
		return nil
	}
	s.said.WriteString(line + "\n")
	_, code, ends := strings.Cut(line, "+++ exit code: ")
	if !ends {
		return nil
	}
	r := known.Result{Name: s.name, Passed: code == "0", Seconds: time.Since(s.since).Seconds()}
	s.name = ""
	s.between = nil
	if r.Name == canary {
		return nil
	}
	fmt.Fprintf(os.Stderr, "%-9s %-6s %6.1fs %s\n", s.server, map[bool]string{true: "passed", false: "FAILED"}[r.Passed], r.Seconds, r.Name)
	if !r.Passed {
		r.Said = s.said.String()
		if err := os.WriteFile(filepath.Join(s.dir, r.Name+".log"), s.said.Bytes(), 0o644); err != nil {
			return err
		}
	}
	s.run = append(s.run, r)
	return nil
}
