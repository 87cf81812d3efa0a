package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/anykind/anykind/test/kubernetes/known"
)

// test runs the tests of a package with the server of a side.
func (s *suite) test(ctx context.Context, o options, list known.List, name, side string) (known.Run, error) {
	args := []string{"tool", "test2json", "-t", "-p", name, s.program(name), "-test.v=test2json", "-test.run=" + o.run, "-test.timeout=" + o.timeout.String()}
	var skipped []string
	for _, test := range list.Names(known.Skip) {
		if t, ok := strings.CutPrefix(test, name+"/"); ok && !strings.Contains(t, "/") {
			skipped = append(skipped, t)
		}
	}
	if len(skipped) > 0 {
		args = append(args, "-test.skip=^("+strings.Join(skipped, "|")+")$")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(s.module, "test", "integration", filepath.FromSlash(name))
	cmd.Env = append(os.Environ(), "KUBE_INTEGRATION_ETCD_URL="+s.etcd,
		"PATH="+filepath.Dir(s.server)+string(os.PathListSeparator)+os.Getenv("PATH"), // etcd is there, too
		"TEST_SRCDIR="+filepath.Join(s.dir, "src"), "TEST_WORKSPACE=.")
	if side == "anykind" {
		cmd.Env = append(cmd.Env, "ANYKIND_KUBE_APISERVER="+s.server)
	}
	// A process group lets the tests' child processes end with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	run, err := s.read(out, name, side)
	_ = cmd.Wait() // the events report failures
	if err == nil && len(run) == 0 && o.run == "" {
		err = fmt.Errorf("%s with %s: no test ran; see %s", name, side, s.log(name, side))
	}
	return run, err
}

func (s *suite) log(name, side string) string {
	return filepath.Join(s.dir, strings.ReplaceAll(name, "/", "-")+"-"+side+".log")
}

// An event is a line of go tool test2json.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// read collects results, and writes the output to a file.
func (s *suite) read(from io.Reader, name, side string) (known.Run, error) {
	log, err := os.Create(s.log(name, side))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	var run known.Run
	said := map[string]*strings.Builder{}
	running := ""
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(log, lines.Text())
			continue
		}
		fmt.Fprint(log, e.Output)
		test, _, sub := strings.Cut(e.Test, "/")
		switch {
		case test == "":
			continue
		case e.Action == "run" && !sub:
			running = test
		case e.Action == "output":
			if said[test] == nil {
				said[test] = &strings.Builder{}
			}
			said[test].WriteString(e.Output)
		case !sub && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip"):
			r := known.Result{Name: name + "/" + test, Passed: e.Action == "pass", Skipped: e.Action == "skip", Seconds: e.Elapsed}
			if e.Action == "fail" && said[test] != nil {
				r.Said = said[test].String()
			}
			fmt.Fprintf(os.Stderr, "%-9s %-4s %6.1fs %s\n", side, e.Action, e.Elapsed, r.Name)
			run = append(run, r)
			if running == test {
				running = ""
			}
			delete(said, test)
		}
	}
	if running != "" {
		run = append(run, known.Result{Name: name + "/" + running, Said: "it did not end"})
	}
	return run, lines.Err()
}
