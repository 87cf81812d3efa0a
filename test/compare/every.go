package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// stores are all stores of anykind.
var stores = []string{"memory", "file", "etcd"}

// A comparison is one of several parallel ones, each a process with servers of its own.
type comparison struct {
	store string
	seed  uint64
	log   string
	last  string // the summary that it printed
	err   error
}

// every runs comparisons of each store with a number of new seeds, in parallel, and prints a line
// about each.
func every(ctx context.Context, seeds int, logs string, args []string, out io.Writer) error {
	itself, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	var all []*comparison
	for _, store := range stores {
		for range seeds {
			seed := 1 + pick()
			all = append(all, &comparison{store: store, seed: seed, log: filepath.Join(logs, fmt.Sprintf("%s-%d.log", store, seed))})
		}
	}
	fmt.Fprintf(out, "commit %s, %s, %d comparisons, logs in %s\n", commit(ctx), time.Now().UTC().Format(time.RFC3339), len(all), logs)
	var done sync.WaitGroup
	for _, c := range all {
		done.Go(func() { c.err = c.run(ctx, itself, args) })
	}
	done.Wait()
	var failed []error
	for _, c := range all {
		fmt.Fprintf(out, "%-6s seed %-7d %s\n", c.store, c.seed, cmp.Or(c.last, "no summary"))
		if c.err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", c.log, c.err))
		}
	}
	return errors.Join(failed...)
}

// run runs one comparison, with the common flags, and saves its summary.
func (c *comparison) run(ctx context.Context, itself string, args []string) error {
	log, err := os.Create(c.log)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, itself, append(args, "-every", "0", "-store", c.store, "-seed", fmt.Sprint(c.seed))...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it then stops its servers
	cmd.WaitDelay = time.Minute
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Run()
	c.last = summary(c.log)
	return err
}

// summarized is the prefix of a comparison's summary.
const summarized = "summary: "

// summary returns the summary in a log, "" without one.
func summary(path string) (last string) {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadString('\n')
		if text, found := strings.CutPrefix(line, summarized); found {
			last = strings.TrimSpace(text)
		}
		if err != nil {
			return last
		}
	}
}

// commit returns the output of git describe.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
