// Package revision reads the files of two states of a git repository: two commits, or a commit and
// the working tree.
//
// It runs the program git, and only commands that read. It knows paths and contents, and nothing of
// the objects in files.
package revision

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Range is two states of a repository. An empty New is the working tree.
type Range struct {
	Old, New string
	// Fork takes the last common ancestor of Old and New in place of Old, as A...B of git diff does.
	Fork bool
}

// Parse reads a revision, A..B or A...B, as git diff does. A missing A or B is HEAD.
func Parse(text string) (Range, error) {
	var r Range
	if a, b, ok := strings.Cut(text, "..."); ok {
		r = Range{Old: orHead(a), New: orHead(b), Fork: true}
	} else if a, b, ok := strings.Cut(text, ".."); ok {
		r = Range{Old: orHead(a), New: orHead(b)}
	} else {
		r = Range{Old: text}
	}
	for _, one := range []string{r.Old, r.New} {
		if strings.HasPrefix(one, "-") || strings.ContainsAny(one, " \t\n") {
			return Range{}, fmt.Errorf("%q is not a revision: want REV, A..B or A...B", text)
		}
	}
	if r.Old == "" {
		return Range{}, errors.New("the revision is empty: want REV, A..B or A...B")
	}
	return r, nil
}

func orHead(revision string) string {
	if revision == "" {
		return "HEAD"
	}
	return revision
}

// A File is a file in one state.
type File struct {
	// Name is the path as the working tree has it, from the current folder or absolute.
	Name string
	Data []byte
	// Given reports that the path itself was asked for, and not a folder above it.
	Given bool
}

// Files returns the files at some paths in both states, each sorted by name. A path can be a file, or
// a folder with all its files that match. The working tree has no files that git ignores.
func (r Range) Files(ctx context.Context, paths []string, match func(name string) bool) (old, now []File, err error) {
	for _, path := range paths {
		p, err := r.locate(ctx, path)
		if err != nil {
			return nil, nil, err
		}
		before, err := p.committed(ctx, p.old, match)
		if err != nil {
			return nil, nil, err
		}
		after, err := p.after(ctx, match)
		if err != nil {
			return nil, nil, err
		}
		if len(before)+len(after) == 0 && !exists(path) {
			return nil, nil, fmt.Errorf("%s: no such file or folder, neither in %s nor in %s", path, r.Old, r.newName())
		}
		old, now = append(old, before...), append(now, after...)
	}
	return distinct(old), distinct(now), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (r Range) newName() string {
	if r.New == "" {
		return "the working tree"
	}
	return r.New
}

// distinct sorts files by name, and drops those of overlapping paths.
func distinct(files []File) []File {
	byName := map[string]File{}
	for _, f := range files {
		byName[f.Name] = f
	}
	all := make([]File, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

// A place is a path in a repository.
type place struct {
	folder   string // an existing folder of the working tree
	rest     string // the path below it
	old, now string // commits; an empty now is the working tree
}

// locate finds the commits, and the repository of a path. The path may exist in only one of the states.
func (r Range) locate(ctx context.Context, path string) (place, error) {
	p := place{folder: filepath.Clean(path), rest: "."}
	for {
		if info, err := os.Stat(p.folder); err == nil && info.IsDir() {
			break
		}
		p.rest = filepath.Join(filepath.Base(p.folder), p.rest)
		parent := filepath.Dir(p.folder)
		if parent == p.folder {
			return place{}, fmt.Errorf("%s: no such file or folder", path)
		}
		p.folder = parent
	}
	if _, err := p.git(ctx, nil, "rev-parse", "--git-dir"); errors.Is(err, errNoGit) {
		return place{}, err
	} else if err != nil {
		return place{}, fmt.Errorf("%s is not in a git repository: %w", path, err)
	}
	var err error
	if p.old, err = p.commit(ctx, r.Old); err != nil {
		return place{}, err
	}
	if r.New == "" {
		return p, nil
	}
	if p.now, err = p.commit(ctx, r.New); err != nil {
		return place{}, err
	}
	if r.Fork {
		out, err := p.git(ctx, nil, "merge-base", p.old, p.now)
		if err != nil {
			return place{}, fmt.Errorf("%s and %s have no common ancestor: fetch more commits, or use %[1]s..%[2]s", r.Old, r.New)
		}
		p.old = strings.TrimSpace(string(out))
	}
	return p, nil
}

// commit returns the hash of a commit.
func (p place) commit(ctx context.Context, revision string) (string, error) {
	out, err := p.git(ctx, nil, "rev-parse", "--verify", "--quiet", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("unknown revision %q in the repository of %s: fetch it first; a shallow clone has no earlier commits (git fetch --unshallow)", revision, p.folder)
	}
	return strings.TrimSpace(string(out)), nil
}

// after returns the files of the new state.
func (p place) after(ctx context.Context, match func(string) bool) ([]File, error) {
	if p.now != "" {
		return p.committed(ctx, p.now, match)
	}
	out, err := p.git(ctx, nil, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", p.rest)
	if err != nil {
		return nil, err
	}
	var files []File
	for name := range strings.SplitSeq(string(out)+p.rest, "\x00") { // with a file that is ignored and asked for
		given := filepath.Clean(name) == p.rest
		full := filepath.Join(p.folder, name)
		info, err := os.Stat(full)
		if err != nil || info.IsDir() || !given && !match(name) {
			continue
		}
		data, err := os.ReadFile(full)
		if err != nil {
			return nil, err
		}
		files = append(files, File{Name: full, Data: data, Given: given})
	}
	return files, nil
}

// committed returns the files of a commit.
func (p place) committed(ctx context.Context, commit string, match func(string) bool) ([]File, error) {
	out, err := p.git(ctx, nil, "ls-tree", "-r", "-z", commit, "--", p.rest)
	if err != nil {
		return nil, err
	}
	var files []File
	var hashes strings.Builder
	for entry := range strings.SplitSeq(string(out), "\x00") {
		kind, name, ok := strings.Cut(entry, "\t")
		fields := strings.Fields(kind) // mode, type, hash
		if !ok || len(fields) != 3 || !strings.HasPrefix(fields[0], "100") {
			continue // a link or a submodule
		}
		given := filepath.Clean(name) == p.rest
		if given || match(name) {
			files = append(files, File{Name: filepath.Join(p.folder, name), Given: given})
			hashes.WriteString(fields[2] + "\n")
		}
	}
	return files, p.contents(ctx, hashes.String(), files)
}
