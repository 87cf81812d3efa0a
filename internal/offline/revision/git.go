package revision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// errNoGit reports that the program is missing.
var errNoGit = errors.New("the program git was not found: install it, or add its folder to PATH")

// git runs a command of git in the folder, and returns its output.
func (p place) git(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	return p.gitWith(ctx, nil, in, args...)
}

// gitWith is git with more variables of the environment.
func (p place) gitWith(ctx context.Context, variables []string, in io.Reader, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--literal-pathspecs", "-C", p.folder}, args...)...)
	// A hook of git sets paths for its own folder.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"}, name)
	})
	cmd.Env = append(cmd.Env, variables...)
	cmd.Stdin = in
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errNoGit
	case errors.As(err, &exit):
		said := strings.TrimSpace(string(exit.Stderr))
		return nil, fmt.Errorf("git %s: %s", args[0], strings.TrimPrefix(said, "fatal: "))
	}
	return out, err
}

// contents reads the contents of files, given a line with the hash of each.
func (p place) contents(ctx context.Context, hashes string, files []File) error {
	if len(files) == 0 {
		return nil
	}
	out, err := p.git(ctx, strings.NewReader(hashes), "cat-file", "--batch")
	if err != nil {
		return err
	}
	for i := range files {
		header, rest, _ := bytes.Cut(out, []byte("\n"))
		size := 0
		if _, err := fmt.Sscanf(string(header), "%s blob %d", new(string), &size); err != nil || len(rest) <= size {
			return fmt.Errorf("%s: git cat-file says %q", files[i].Name, header)
		}
		files[i].Data, out = rest[:size:size], rest[size+1:]
	}
	return nil
}
