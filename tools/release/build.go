package main

import (
	"cmp"
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/module"
)

// A platform is an operating system and an architecture with an archive.
type platform struct{ os, arch string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func (p platform) String() string { return p.os + "-" + p.arch }

// program is the file name of the program on the platform.
func (p platform) program() string {
	if p.os == "windows" {
		return "anykind.exe"
	}
	return "anykind"
}

// A program is one that was built.
type program struct {
	platform
	path string
	info *debug.BuildInfo
}

// The program is built as make build does, with the commit in it.
const (
	buildTags = "grpcnotrace"
	linked    = "github.com/anykind/anykind/internal/server.release"
)

// build builds the programs in a temporary folder, and derives the version from git if none is given.
func (r *release) build(ctx context.Context) ([]program, error) {
	// The name begins with a dot: git ignores it, and so reports no change.
	dir := filepath.Join(r.source, ".build", "release")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	var all []program
	for _, p := range platforms {
		say("building for %s", p)
		built, err := r.buildFor(ctx, p, filepath.Join(dir, p.String(), p.program()))
		if err != nil {
			return nil, err
		}
		all = append(all, built)
	}
	r.version = cmp.Or(r.version, all[0].info.Main.Version)
	return all, nil
}

func (r *release) buildFor(ctx context.Context, p platform, to string) (program, error) {
	ldflags := "-s -w"
	if r.version != "" {
		ldflags += " -X " + linked + "=" + r.version
	}
	args := []string{"build", "-buildvcs=true", "-trimpath", "-mod=readonly", "-tags", buildTags, "-ldflags", ldflags, "-o", to, "./cmd/anykind"}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = r.source
	// Variables that would change the program have Go's defaults.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-trimpath", "GOWORK=off", "GOEXPERIMENT=", "GOFIPS140=off", "GODEBUG=")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return program{}, explained(err, "go", args)
	}
	info, err := buildinfo.ReadFile(to)
	if err != nil {
		return program{}, err
	}
	if err := r.check(info); err != nil {
		return program{}, fmt.Errorf("the program for %s: %w", p, err)
	}
	return program{p, to, info}, nil
}

// check rejects a program whose build settings differ.
func (r *release) check(info *debug.BuildInfo) error {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	switch {
	case settings["vcs.revision"] != r.commit.id:
		return fmt.Errorf("it is of commit %q, want %s", settings["vcs.revision"], r.commit.id)
	case settings["vcs.modified"] != "false":
		return errors.New("the working tree changed during the build")
	case settings["GOEXPERIMENT"] != "":
		return fmt.Errorf("it has the experiments %s: go env -u GOEXPERIMENT", settings["GOEXPERIMENT"])
	case info.GoVersion != runtime.Version():
		return fmt.Errorf("%s built it, and this is %s", info.GoVersion, runtime.Version())
	}
	tagged := info.Main.Version
	if r.version != "" && r.version != tagged && !module.IsPseudoVersion(tagged) && !strings.HasPrefix(tagged, "(") {
		return fmt.Errorf("the commit has the tag %s, and VERSION is %s", tagged, r.version)
	}
	return nil
}

// here returns the program for this machine.
func here(programs []program) (program, error) {
	for _, p := range programs {
		if p.os == runtime.GOOS && p.arch == runtime.GOARCH {
			return p, nil
		}
	}
	return program{}, fmt.Errorf("a release is made on one of the platforms that it is for, so that the program can be asked for its pages: %v, and not %s-%s",
		platforms, runtime.GOOS, runtime.GOARCH)
}
