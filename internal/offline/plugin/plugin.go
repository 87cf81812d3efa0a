// Package plugin makes this program a plugin of kubectl: it makes, and takes away, the names under which
// kubectl looks for one in the folders of PATH.
//
// The first name is a link to the program, and the others are links to the first one. Where there are no
// links, they are copies. The package does not know what the program does under each name.
package plugin

import (
	"debug/buildinfo"
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

// A Folder is where names of the program are.
type Folder struct {
	Dir string
	// Program is what the first name leads to. It may be one of the names in the folder itself, which is
	// left alone then: whoever made that keeps it.
	Program string
	// Names are those of the plugin, without what the system has at the end of names of programs.
	Names []string
	// Path are the folders in which kubectl looks, in order.
	Path []string
	// Copy makes copies, for systems without links.
	Copy bool
}

// What happened to a name.
const (
	Made     = "created"
	Replaced = "replaced"
	Kept     = "unchanged"
	Removed  = "removed"
	Left     = "left" // it is not a link of this program
)

// An Action is the change of a name.
type Action struct {
	Path string
	What string
}

// Here is a Folder, with the program by the path by which it was called, such as os.Args[0]. Without a
// dir it is the one in which the program was found.
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

// find returns the path of this program as somebody calls it. The one that the system knows may be of a
// version of it, which the next one replaces.
func find(called string) (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", err
	}
	at, err := exec.LookPath(called)
	if err != nil {
		return own, nil
	}
	if at, err = filepath.Abs(at); err != nil || !same(at, own) {
		return own, nil
	}
	return at, nil
}

// follow returns what a name in the folder of the program leads to, if the program was called by one. A
// link to elsewhere is one of somebody else, such as krew, who has it lead to the version that is installed.
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

// ending is what names of programs end with.
func ending() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

func (f Folder) path(name string) string { return filepath.Join(f.Dir, name+ending()) }

// target is what the link of a name has in it.
func (f Folder) target(i int) string {
	switch {
	case i > 0:
		return f.Names[0] + ending()
	case filepath.Dir(f.Program) == f.Dir:
		return filepath.Base(f.Program)
	}
	return f.Program
}

// Install makes the names. What is there and leads to this program stays; what leads to another version of
// it is replaced. It is an error if something else is there, and nothing is changed then.
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

// plan says what Install does about a name.
func (f Folder) plan(i int) (string, error) {
	at := f.path(f.Names[i])
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Made, nil
	case err != nil:
		return "", err
	case at == f.Program || same(at, f.Program):
		return Kept, nil
	}
	if link := info.Mode()&fs.ModeSymlink != 0; link && (f.leads(at, i) || nowhere(at)) || (link || f.Copy) && ours(at) {
		return Replaced, nil
	}
	return "", fmt.Errorf("%s exists and is no link to this program: remove it, or name another folder", at)
}

// nowhere reports whether a link leads to nothing.
func nowhere(at string) bool {
	_, err := os.Stat(at)
	return errors.Is(err, fs.ErrNotExist)
}

// leads reports whether the link at a name is the one that Install makes.
func (f Folder) leads(at string, i int) bool {
	target, err := os.Readlink(at)
	return err == nil && target == f.target(i)
}

// put makes a name, in the place of what is there.
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

// Uninstall takes away the names that Install made, and leaves all others.
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

// InPath reports whether kubectl looks into the folder.
func (f Folder) InPath() bool {
	return slices.ContainsFunc(f.Path, func(dir string) bool { return dir != "" && same(dir, f.Dir) })
}

// Overshadowed returns, for each name that kubectl does not find in this folder, because it finds it in
// an earlier one, what it finds.
func (f Folder) Overshadowed() map[string]string {
	out := map[string]string{}
	for _, name := range f.Names {
		for _, dir := range f.Path {
			if dir == "" {
				continue
			}
			if same(dir, f.Dir) {
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

// same reports whether both paths are of one file.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// module is that of this program.
const module = "github.com/anykind/anykind"

// ours reports whether a file is this program, in whichever version.
func ours(path string) bool {
	info, err := buildinfo.ReadFile(path)
	return err == nil && info.Main.Path == module
}
