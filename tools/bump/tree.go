package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// A place is a line of our tree with the work that a change of Kubernetes makes there.
type place struct {
	file string
	line int // 0 for the file
	work string
}

func (p place) String() string {
	if p.line == 0 {
		return p.file + "  " + p.work
	}
	return fmt.Sprintf("%s:%d  %s", p.file, p.line, p.work)
}

// A tree has the text files of a repository.
type tree struct {
	files []textFile
	// index has the lines of each name.
	index map[string][]place
}

type textFile struct {
	name string // with slashes, from the top
	data string
}

// readTree reads the files that git tracks, and new ones.
func readTree(ctx context.Context, top string) (*tree, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-co", "--exclude-standard")
	list.Dir = top
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var files []textFile
	for name := range strings.Lines(string(out)) {
		name = strings.TrimSuffix(name, "\n")
		data, err := os.ReadFile(filepath.Join(top, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // deleted, and not committed
		}
		if err != nil {
			return nil, err
		}
		if utf8.Valid(data) && !strings.HasSuffix(name, ".sum") {
			files = append(files, textFile{name, string(data)})
		}
	}
	return newTree(files), nil
}

func newTree(files []textFile) *tree {
	t := &tree{files: files, index: map[string][]place{}}
	for _, f := range t.files {
		if isRecord(f.name) {
			continue
		}
		n := 0
		for line := range strings.Lines(f.data) {
			n++
			seen := map[string]bool{}
			for _, w := range words(line) {
				if !seen[w] {
					seen[w] = true
					t.index[w] = append(t.index[w], place{file: f.name, line: n})
				}
			}
		}
	}
	return t
}

// isRecord reports whether a file is written by a command, or is history. No line of it is work.
func isRecord(name string) bool {
	for _, prefix := range []string{
		"docs/decisions/", "docs/benchmarks", "internal/builtin/testdata/recorded/", "internal/object/gate/gates.txt", "internal/server/openapi/testdata/", "tools/bump/",
	} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return strings.HasSuffix(name, ".svg")
}

// named returns the places that have a name.
func (t *tree) named(name, work string) (out []place) {
	for _, p := range t.index[name] {
		p.work = work
		out = append(out, p)
	}
	return out
}

// with returns the places that have a text.
func (t *tree) with(text, work string) (out []place) {
	for _, f := range t.files {
		if isRecord(f.name) || !strings.Contains(f.data, text) {
			continue
		}
		n := 0
		for line := range strings.Lines(f.data) {
			n++
			if strings.Contains(line, text) {
				out = append(out, place{f.name, n, work})
			}
		}
	}
	return out
}

// file returns the text of a file.
func (t *tree) file(name string) (string, bool) {
	for _, f := range t.files {
		if f.name == name {
			return f.data, true
		}
	}
	return "", false
}

// has reports whether a folder has files.
func (t *tree) has(folder string) bool {
	for _, f := range t.files {
		if strings.HasPrefix(f.name, folder+"/") {
			return true
		}
	}
	return false
}
