package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/anykind/anykind/tools/release/image"
	"github.com/anykind/anykind/tools/release/sbom"
)

// A part is a module that is in a program or in the image, with the texts of its licence.
type part struct {
	sbom.Module
	texts []sbom.Text
}

// parts are the modules by path.
type parts map[string]part

// standard is the name of Go's standard library in package URLs.
const standard = "std"

// modulesOf returns the modules of the programs and of the image.
func modulesOf(ctx context.Context, source string, programs []program) (parts, error) {
	dirs, err := folders(ctx, source)
	if err != nil {
		return nil, err
	}
	all := parts{}
	for _, p := range programs {
		for _, m := range p.info.Deps {
			if m.Replace != nil {
				return nil, fmt.Errorf("%s is replaced by %s: a release has published modules only", m.Path, m.Replace.Path)
			}
			if err := all.add(m, dirs[m.Path]); err != nil {
				return nil, err
			}
		}
	}
	root, err := goOutput(ctx, source, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	std := &debug.Module{Path: standard, Version: strings.TrimPrefix(programs[0].info.GoVersion, "go")}
	if err := all.add(std, strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	ourDirs, err := folders(ctx, filepath.Join(source, "tools", "release"))
	if err != nil {
		return nil, err
	}
	own, _ := debug.ReadBuildInfo()
	for _, m := range own.Deps {
		if m.Path == image.Roots {
			return all, all.add(m, ourDirs[m.Path])
		}
	}
	return nil, fmt.Errorf("this program does not contain %s, the module with the CAs of the image", image.Roots)
}

func (all parts) add(m *debug.Module, dir string) error {
	if _, ok := all[m.Path]; ok {
		return nil
	}
	texts, err := sbom.Texts(dir)
	if err != nil {
		return fmt.Errorf("%s %s: %w", m.Path, m.Version, err)
	}
	license := sbom.License(texts)
	if license == "" {
		say("%s %s has no licence that is known here; the SBOM says so", m.Path, m.Version)
	}
	all[m.Path] = part{sbom.Module{Path: m.Path, Version: m.Version, Sum: m.Sum, License: license}, texts}
	return nil
}

// folders returns the folders of the modules of a go.mod file.
func folders(ctx context.Context, dir string) (map[string]string, error) {
	out, err := goOutput(ctx, dir, "list", "-mod=readonly", "-m", "-json=Path,Dir", "all")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Dir string }
		err := in.Decode(&m)
		if errors.Is(err, io.EOF) {
			return dirs, nil
		}
		if err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
}

func goOutput(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	return out, explained(err, "go", args)
}

// linkedInto returns the modules in a program.
func (all parts) linkedInto(p program) []sbom.Module {
	modules := []sbom.Module{all[standard].Module}
	for _, m := range p.info.Deps {
		modules = append(modules, all[m.Path].Module)
	}
	return modules
}

// licenses returns the texts of all licences as one.
func (all parts) licenses() []byte {
	var b bytes.Buffer
	b.WriteString("anykind is made with the work of others. These are their licences.\n")
	for _, path := range all.paths() {
		m := all[path]
		fmt.Fprintf(&b, "\n%s\n%s %s\n", strings.Repeat("=", 80), m.Path, m.Version)
		for _, t := range m.texts {
			fmt.Fprintf(&b, "%s\n%s\n\n%s\n", strings.Repeat("-", 80), t.Name, bytes.TrimSpace(t.Data))
		}
	}
	return b.Bytes()
}

func (all parts) paths() []string {
	var paths []string
	for path := range all {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}
