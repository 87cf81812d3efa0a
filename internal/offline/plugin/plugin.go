// Package plugin installs this program as a kubectl plugin, and uninstalls it: kubectl finds plugins
// by their names in the folders of PATH.
//
// The first name is a symbolic link to the program, and the others are links to the first one. On
// systems without links they are copies. The package does not know the commands behind the names.
package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/store/atomicfile"
)

// A Folder is the folder for the names.
type Folder struct {
	Dir string
	// Program is the target of the first name. It may have one of the names in this folder. That
	// file is then not managed here: Install and Uninstall keep it.
	Program string
	// Names are the names of the plugin, without the file extension of programs.
	Names []string
	// Path are the folders in which kubectl looks, in order.
	Path []string
	// Copy makes copies, for systems without links.
	Copy bool
}

// The results of an action for a name.
const (
	Made     = "created"
	Replaced = "replaced"
	Kept     = "unchanged"
	Removed  = "removed"
	Left     = "left" // another file, or a link to one
)

// An Action is the change of a name.
type Action struct {
	Path string
	What string
}

// Here returns a Folder with this program, found by its command name, such as os.Args[0]. Without a
// dir it is the folder of the program.
func Here(called, dir string, names ...string) (Folder, error) {
	f := Folder{Dir: dir, Names: names, Path: filepath.SplitList(os.Getenv("PATH")), Copy: runtime.GOOS == "windows"}
	var err error
	if f.Program, err = find(called); err != nil {
		return Folder{}, err
	}
	if dir == "" {
		f.Dir = filepath.Dir(f.Program)
	}
	if f.Dir, err = filepath.Abs(f.Dir); err != nil {
		return Folder{}, err
	}
	f.Program = f.follow(f.Program)
	return f, nil
}

// find returns the path by which users call this program. The path from the system may contain a
// version, and stop working after an update.
func find(called string) (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	at, err := exec.LookPath(called)
	if err != nil {
		return own, nil
	}
	if at, err = filepath.Abs(at); err != nil || !sameFile(at, own) {
		return own, nil
	}
	return at, nil
}

// follow returns the target of a plugin name in the folder of the program, if the program was called
// by one. A link to another folder belongs to a package manager such as krew, which updates its
// target.
func (f Folder) follow(path string) string {
	if !slices.Contains(f.Names, strings.TrimSuffix(filepath.Base(path), ending())) {
		return path
	}
	target, err := os.Readlink(path)
	if err != nil || filepath.Base(target) != target {
		return path
	}
	return filepath.Join(filepath.Dir(path), target)
}

// ending is the file extension of programs.
func ending() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

func (f Folder) path(name string) string { return filepath.Join(f.Dir, name+ending()) }

// target returns the target of the link for a name.
func (f Folder) target(i int) string {
	switch {
	case i > 0:
		return f.Names[0] + ending()
	case filepath.Dir(f.Program) == f.Dir:
		return filepath.Base(f.Program)
	}
	return f.Program
}

// Install installs the names. It keeps links to this program, and replaces other versions of it. A
// different file is an error, and nothing is changed then.
func (f Folder) Install() ([]Action, error) {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return nil, err
	}
	actions := make([]Action, len(f.Names))
	for i, name := range f.Names {
		what, err := f.plan(i)
		if err != nil {
			return nil, err
		}
		actions[i] = Action{f.path(name), what}
	}
	for i, a := range actions {
		if a.What == Kept {
			continue
		}
		if err := f.put(a.Path, i); err != nil {
			return nil, err
		}
	}
	return actions, nil
}

// plan returns the result that Install will have for a name.
func (f Folder) plan(i int) (string, error) {
	at := f.path(f.Names[i])
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Made, nil
	case err != nil:
		return "", err
	case at == f.Program || sameFile(at, f.Program):
		return Kept, nil
	}
	if link := info.Mode()&fs.ModeSymlink != 0; link && (f.leads(at, i) || nowhere(at)) || (link || f.Copy) && ours(at) {
		return Replaced, nil
	}
	return "", fmt.Errorf("%s exists and is no link to this program: remove it, or name another folder", at)
}

// nowhere reports whether a link is broken.
func nowhere(at string) bool {
	_, err := os.Stat(at)
	return errors.Is(err, fs.ErrNotExist)
}

// leads reports whether the link equals the one that Install makes.
func (f Folder) leads(at string, i int) bool {
	target, err := os.Readlink(at)
	return err == nil && target == f.target(i)
}

// put installs a name, and replaces the existing file.
func (f Folder) put(at string, i int) error {
	if f.Copy {
		program, err := os.ReadFile(f.Program)
		if err != nil {
			return err
		}
		return atomicfile.ReplaceCached(at, program, 0o755)
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(f.target(i), at)
}

// Uninstall removes the installed names, and keeps other files.
func (f Folder) Uninstall() ([]Action, error) {
	var actions []Action
	for i, name := range f.Names {
		at := f.path(name)
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if at == f.Program || !f.leads(at, i) && !(f.Copy && ours(at)) {
			actions = append(actions, Action{at, Left})
			continue
		}
		if err := os.Remove(at); err != nil {
			return actions, err
		}
		actions = append(actions, Action{at, Removed})
	}
	return actions, nil
}

// InPath reports whether the folder is in PATH.
func (f Folder) InPath() bool {
	return slices.ContainsFunc(f.Path, func(dir string) bool { return dir != "" && sameFile(dir, f.Dir) })
}

// Overshadowed returns the names that kubectl finds in an earlier folder of PATH, with the path
// there.
func (f Folder) Overshadowed() map[string]string {
	out := map[string]string{}
	for _, name := range f.Names {
		for _, dir := range f.Path {
			if dir == "" {
				continue
			}
			if sameFile(dir, f.Dir) {
				break
			}
			if found, err := exec.LookPath(filepath.Join(dir, name+ending())); err == nil {
				out[name] = found
				break
			}
		}
	}
	return out
}

// sameFile reports whether both paths are the same file.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// module is the module path of this program.
const module = "github.com/anykind/anykind"
