package revision

import (
	"context"
	"os"
	"path/filepath"
	"strings"
)

// Has reports whether a folder has one of some files in either state.
func (r Range) Has(ctx context.Context, folder string, names []string) (bool, error) {
	p, err := r.locate(ctx, folder)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if r.New == "" && exists(filepath.Join(folder, name)) {
			return true, nil
		}
		for _, commit := range []string{p.old, p.now} {
			if commit == "" {
				continue
			}
			out, err := p.git(ctx, nil, "ls-tree", commit, "--", filepath.Join(p.rest, name))
			if err != nil || len(out) > 0 {
				return len(out) > 0, err
			}
		}
	}
	return false, nil
}

// Export writes all files of the commits to temporary folders, because a build may read any of them.
// It returns the folder that path is in each state; a working tree is itself. The caller removes the
// folders.
func (r Range) Export(ctx context.Context, path string) (old, now string, remove func(), err error) {
	remove = func() {}
	p, err := r.locate(ctx, path)
	if err != nil {
		return "", "", remove, err
	}
	temporary, err := os.MkdirTemp("", "anykind-")
	if err != nil {
		return "", "", remove, err
	}
	remove = func() { _ = os.RemoveAll(temporary) }
	if old, err = p.export(ctx, p.old, filepath.Join(temporary, "old")); err != nil || r.New == "" {
		return old, path, remove, err
	}
	now, err = p.export(ctx, p.now, filepath.Join(temporary, "new"))
	return old, now, remove, err
}

// export writes the files of a commit to a folder, through an index of its own, and returns the
// path below it.
func (p place) export(ctx context.Context, commit, to string) (string, error) {
	out, err := p.git(ctx, nil, "rev-parse", "--show-toplevel", "--show-prefix")
	if err != nil {
		return "", err
	}
	lines := strings.Split(string(out), "\n")
	top := place{folder: lines[0]}
	index := []string{"GIT_INDEX_FILE=" + to + ".index"}
	if _, err := top.gitWith(ctx, index, nil, "read-tree", commit); err != nil {
		return "", err
	}
	_, err = top.gitWith(ctx, index, nil, "checkout-index", "--all", "--prefix="+to+string(filepath.Separator))
	return filepath.Join(to, filepath.FromSlash(lines[1]), p.rest), err
}
