package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A commit is the source of a build.
type commit struct {
	id   string
	time time.Time
}

// headOf returns the commit that is checked out in a folder. It fails if there are uncommitted
// changes.
func headOf(ctx context.Context, dir string) (commit, error) {
	changed, err := git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return commit{}, err
	}
	if changed != "" {
		return commit{}, fmt.Errorf("uncommitted changes make the release irreproducible: commit or remove them first:\n%s", changed)
	}
	said, err := git(ctx, dir, "log", "-1", "--format=%H %ct")
	if err != nil {
		return commit{}, err
	}
	id, seconds, _ := strings.Cut(said, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	return commit{id, time.Unix(at, 0).UTC()}, err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...).Output()
	return strings.TrimRight(string(out), "\n"), explained(err, "git", args)
}

// explained adds the standard error of a program to its error.
func explained(err error, program string, args []string) error {
	if err == nil {
		return nil
	}
	var exit *exec.ExitError
	said := ""
	if errors.As(err, &exit) {
		said = strings.TrimSpace(string(exit.Stderr))
	}
	return fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, said)
}
