// Command suites runs the envtest suites of published modules: once with the published kube-apiserver
// and etcd, and once with anykind in their place.
//
// The tests are built as published, and run in a copy of their module, since some write files beside
// their source. The command prints a table of results and times. It fails if a test fails only with
// anykind and known does not list it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	only := flag.String("run", "", "run only packages whose path matches this `regexp`")
	timeout := flag.Duration("timeout", 20*time.Minute, "time limit for a package")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string, timeout time.Duration) error {
	matches, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	assets, err := fill()
	if err != nil {
		return err
	}
	defer assets.remove()
	fmt.Println("| package | version | tests | kube-apiserver passes | time | anykind passes | time |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	var wrong []string
	for _, s := range suites {
		if !slices.ContainsFunc(s.packages, func(p string) bool { return matches.MatchString(path.Join(s.module, p)) }) {
			continue
		}
		c, err := open(ctx, s)
		if err != nil {
			return err
		}
		for _, p := range s.packages {
			if !matches.MatchString(path.Join(s.module, p)) {
				continue
			}
			alone, err := c.compare(ctx, p, assets, timeout)
			if err != nil {
				c.remove()
				return err
			}
			wrong = append(wrong, alone...)
		}
		c.remove()
	}
	if len(wrong) > 0 {
		return fmt.Errorf("with anykind alone these fail:\n%s", strings.Join(wrong, "\n"))
	}
	return ctx.Err()
}

// compare runs a package with both, prints a line of the table, and returns the tests that fail only
// with anykind.
func (c *copied) compare(ctx context.Context, pkg string, a *assets, timeout time.Duration) ([]string, error) {
	binary, err := c.build(ctx, pkg)
	if err != nil {
		return nil, err
	}
	theirs, err := c.test(ctx, binary, pkg, a.theirs, timeout)
	if err != nil {
		return nil, err
	}
	ours, err := c.test(ctx, binary, pkg, a.ours, timeout)
	if err != nil {
		return nil, err
	}
	fmt.Printf("| `%s` | %s | %d | %d | %.1f s | %d | %.1f s |\n", path.Join(c.module, pkg), c.version,
		len(theirs.state), theirs.passed(), theirs.took.Seconds(), ours.passed(), ours.took.Seconds())
	var alone []string
	for name, passed := range theirs.state {
		if passed && !ours.state[name] && known[name] == "" {
			alone = append(alone, pkg+": "+name)
		}
	}
	slices.Sort(alone)
	return alone, nil
}
