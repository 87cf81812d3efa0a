package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/anykind/anykind/tools/release/archive"
	"github.com/anykind/anykind/tools/release/manual"
)

// shells are the shells with completions, and the file name for each.
var shells = map[string]string{"bash": "anykind.bash", "zsh": "_anykind", "fish": "anykind.fish", "powershell": "anykind.ps1"}

const (
	completions = "completions/"
	manuals     = "man/man1/"
)

// pages returns man pages and shell completions, which the program generates.
func (r *release) pages(ctx context.Context, programs []program) ([]archive.File, error) {
	p, err := here(programs)
	if err != nil {
		return nil, err
	}
	said, err := p.run(ctx, "__describe")
	if err != nil {
		return nil, err
	}
	var commands manual.Command
	if err := json.Unmarshal(said, &commands); err != nil {
		return nil, fmt.Errorf("reading the descriptions of commands: %w", err)
	}
	book := manual.Book{Source: "anykind " + r.version, Title: "anykind", Date: r.commit.time}
	var files []archive.File
	for name, page := range book.Pages(commands) {
		files = append(files, archive.File{Name: manuals + name, Data: page, Mode: 0o644})
	}
	for shell, name := range shells {
		script, err := p.run(ctx, "completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, archive.File{Name: completions + name, Data: script, Mode: 0o644})
	}
	return files, nil
}

func (p program) run(ctx context.Context, args ...string) ([]byte, error) {
	out, err := exec.CommandContext(ctx, p.path, args...).Output()
	return out, explained(err, "anykind", args)
}

// of returns the pages that have readers on a platform.
func of(p platform, pages []archive.File) []archive.File {
	return slices.DeleteFunc(slices.Clone(pages), func(f archive.File) bool {
		return p.os == "windows" && strings.HasPrefix(f.Name, manuals)
	})
}
