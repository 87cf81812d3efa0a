// Command release makes the files of a release, with Go alone: archives of the program for each
// platform, an image, man pages, completions, manifests for installers, and checksums. The same
// commit, built by the same version of Go, gives the same bytes, wherever and whenever it is built.
//
// A module of its own keeps its dependencies out of the product. It publishes nothing.
//
//	make release                    # named after the commit
//	make release VERSION=v1.0.0     # before the tag exists
//	make release BASE=https://example.com/anykind/v1.0.0
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"golang.org/x/mod/semver"
)

// A release holds the options of one run.
type release struct {
	source  string // the top folder of the repository
	out     string // the output folder
	base    string // the URL of the folder of the downloads
	version string
	commit  commit
}

func main() {
	var r release
	flag.StringVar(&r.source, "source", "../..", "the top folder of the repository")
	flag.StringVar(&r.out, "out", "", "the folder to write; its contents are deleted first (default: dist in the repository)")
	flag.StringVar(&r.version, "version", "", "the version, such as v1.0.0 (default: Go's version of the commit)")
	flag.StringVar(&r.base, "base", "", "the URL of the folder with the published files")
	flag.Parse()
	told, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := r.run(told); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run(ctx context.Context) (err error) {
	if r.version != "" && semver.Canonical(r.version) != r.version {
		return fmt.Errorf("%q is no version: want one such as v1.0.0 or v1.0.0-rc.1", r.version)
	}
	if r.source, err = filepath.Abs(r.source); err != nil {
		return err
	}
	if r.out == "" {
		r.out = filepath.Join(r.source, "dist")
	}
	if r.commit, err = headOf(ctx, r.source); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	programs, err := r.build(ctx)
	if err != nil {
		return err
	}
	if r.base == "" {
		r.base = "https://anykind.invalid/" + r.version
		say("%s is the address in the files for installers, and there is nothing: say BASE=URL when you know where the files will be", r.base)
	}
	return r.write(ctx, programs)
}

// write writes the files made from the programs. The checksums come last: without them, a release is
// incomplete.
func (r *release) write(ctx context.Context, programs []program) error {
	parts, err := modulesOf(ctx, r.source, programs)
	if err != nil {
		return err
	}
	pages, err := r.pages(ctx, programs)
	if err != nil {
		return err
	}
	archives, err := r.writeArchives(programs, pages, parts)
	if err != nil {
		return err
	}
	layout, err := r.writeImage(programs, parts)
	if err != nil {
		return err
	}
	for name, make := range map[string]func() ([]byte, error){
		r.file(".spdx.json"): func() ([]byte, error) { return r.sbom(archives, layout, parts) },
		"anykind.yaml":       func() ([]byte, error) { return r.krew(archives) },
		"anykind.rb":         func() ([]byte, error) { return r.formula(archives) },
		"anykind.service":    func() ([]byte, error) { return unit, nil },
	} {
		data, err := make()
		if err == nil {
			err = os.WriteFile(filepath.Join(r.out, name), data, 0o644)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := writeSums(r.out); err != nil {
		return err
	}
	say("%s of commit %s is in %s", r.version, r.commit.id, r.out)
	return nil
}

// file returns the name of a file of the release.
func (r *release) file(rest string) string { return "anykind-" + r.version + rest }

func say(format string, args ...any) {
	fmt.Printf(time.Now().Format("15:04:05 ")+format+"\n", args...)
}
